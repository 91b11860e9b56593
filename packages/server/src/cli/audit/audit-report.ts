/** What came of replaying an audit trail, in words. */
import type { AuditDifference, AuditReplay } from 'redrive';
import { absolute, facts, type Output, plural } from '../terminal/output.ts';
import { safeJson, shown } from '../terminal/safe-text.ts';
import { count } from '../terminal/terminal.ts';

const LISTED = 10;

export function replayLines(replay: AuditReplay, output: Output): string[] {
  const { paint } = output;
  return [
    verdict(replay, output),
    '',
    ...facts(
      [
        ['events', count(replay.events)],
        ['decisions', `${count(replay.checked)} made again, ${count(replay.same)} the same`],
        ['different', none(replay.different)],
        ['wrong policies', list(replay.wrongPolicies)],
        ['unknown policies', replay.unknownPolicy > 0 ? unknownPolicies(replay) : undefined],
        ['missing', replay.missing > 0 ? gaps(replay) : undefined],
        [
          'dropped',
          replay.dropped > 0
            ? `${plural(replay.dropped, 'event')}, as the writers said themselves`
            : undefined,
        ],
        [
          'erased',
          replay.erased > 0
            ? `${plural(replay.erased, 'event')}: their texts are gone, their decisions were made again`
            : undefined,
        ],
        ['twice', none(replay.twins)],
        ['unreadable', none(replay.unreadable)],
      ],
      output,
    ),
    ...replay.differing
      .slice(0, LISTED)
      .flatMap((difference) => ['', ...differenceLines(difference, paint)]),
  ];
}

function verdict({ different, wrongPolicies, checked }: AuditReplay, { paint }: Output): string {
  if (different > 0) {
    return paint(
      'red',
      `✗ ${plural(different, 'decision comes', 'decisions come')} out otherwise.`,
    );
  }
  if (wrongPolicies.length > 0) {
    return paint(
      'red',
      `✗ ${plural(wrongPolicies.length, 'policy is', 'policies are')} not what was registered.`,
    );
  }
  if (checked === 0) return paint('yellow', 'There is no decision in it that could be made again.');
  return paint('green', '✔ Every decision comes out the same.');
}

function differenceLines(
  { event, fields, written, decided }: AuditDifference,
  paint: Output['paint'],
): string[] {
  return [
    `${absolute(event.timestamp)}  ${shown(event.event_type)}  ${shown(String(event.redrive?.key ?? ''))}: ${shown(fields.join(', '))}`,
    paint('red', `  written  ${safeJson(written)}`),
    paint('green', `  decided  ${safeJson({ ...decided, failure: undefined })}`),
  ];
}

function gaps({ missing, gaps: found }: AuditReplay): string[] {
  const lines = found
    .slice(0, LISTED)
    .map(({ instance, from, to }) => shown(`${from} to ${to} of ${instance}`));
  return [plural(missing, 'event'), ...lines, ...(found.length > LISTED ? ['...'] : [])];
}

function unknownPolicies({ unknownPolicy, unknownPolicies: names }: AuditReplay): string[] {
  return [
    `${plural(unknownPolicy, 'decision')} could not be made again: their policy is not in the trail`,
    ...names.slice(0, LISTED).map(shown),
  ];
}

function list(names: readonly string[]): string[] | undefined {
  return names.length > 0 ? names.slice(0, LISTED).map(shown) : undefined;
}

function none(number: number): string | undefined {
  return number > 0 ? count(number) : undefined;
}
