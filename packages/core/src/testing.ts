export type { CriterionCase, NextRetryCase } from './criteria/case.ts';
export { criterionCases, nextRetryCases } from './criteria/cases.ts';
export { seededRandom } from './policy/random.ts';
export { virtualClock, type VirtualClock } from './virtual-clock.ts';
