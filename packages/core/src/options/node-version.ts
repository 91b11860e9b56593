/** The sentence for a Node that is older than what is needed (`22.16`); undefined: it is new enough. */
export function olderNode(what: string, needed: string, version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number);
  if (major > neededMajor || (major === neededMajor && minor >= neededMinor)) return undefined;
  return `${what} needs Node ${needed} or later; this is Node ${version}. Install a newer Node, from https://nodejs.org or with a version manager.`;
}
