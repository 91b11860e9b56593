export { virtualClock, type VirtualClock } from './virtual-clock.ts';
export { seededRandom } from './random.ts';
