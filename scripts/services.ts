/**
 * Gets the real servers that tests and benchmarks run against: `npm run services -- get`.
 * Nothing in the workspace needs one so far.
 */
const [command] = process.argv.slice(2);

if (command === 'get') {
  console.log('no services needed yet');
} else {
  console.error('usage: scripts/services get');
  process.exitCode = 2;
}
