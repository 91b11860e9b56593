/** One place in a fleet that is never empty for long: who is killed there is replaced at once. */
import type { Child, Fleet } from './fleet.ts';
import type { Job, Submit } from './job.ts';
import { readJournal } from './journal.ts';

/** A worker that is killed after so many executions, again and again; the last one is left alive. */
export async function relayWorkers(
  fleet: Fleet,
  job: Omit<Job, 'journal'>,
  lives: readonly number[],
): Promise<Child> {
  for (const executions of lives) {
    const child = fleet.start(job);
    await fleet.until(
      `${job.name} has executed ${executions}`,
      () => child.counts.began >= executions,
    );
    await child.kill();
  }
  return fleet.start(job);
}

/** The same for one that submits: its successor goes on where it was, and asks again for what was not answered. */
export async function relaySubmitters(
  fleet: Fleet,
  job: Omit<Job, 'journal'> & { submit: Submit },
  lives: readonly number[],
): Promise<Child> {
  let { submit } = job;
  for (const answers of lives) {
    const child = fleet.start({ ...job, submit });
    await fleet.until(`${job.name} has ${answers} answers`, () => child.counts.accepted >= answers);
    await child.kill();
    submit = { ...submit, ...whatIsLeft(child, submit.from) };
  }
  return fleet.start({ ...job, submit });
}

/** What a submitter that was killed leaves to its successor. */
export function whatIsLeft({ job }: Child, from: number): Pick<Submit, 'again' | 'from'> {
  const asked = new Set<number>();
  let next = from;
  for (const entry of readJournal(job.journal)) {
    if (entry.type === 'asked') {
      asked.add(entry.number);
      next = Math.max(next, entry.number + 1);
    } else if (entry.type === 'accepted') asked.delete(entry.number);
  }
  return { again: [...asked], from: next };
}
