import { queueNameOf } from '../../model/address.ts';
import type { Destination, NewTask, Task } from '../../model/task.ts';
import type { Element, ElementType } from './arrays.ts';
import type { Column } from './batch.ts';
import { boundedMs, countOf } from './bounds.ts';
import { failureColumns, kept, retryCountOf } from './rows.ts';
import { timeAt } from './times.ts';

/** One column of `retry_queue`, and what a task has for it. */
interface TaskColumn {
  name: string;
  type: ElementType;
  of: (task: Task | NewTask) => Element | null | undefined;
  /** How the column is made of what was sent; the value itself unless given. */
  as?: string;
}

/** Everything that is the same kind of thing in a new task and in one that changes. The times that differ are not here. */
const mutable: readonly TaskColumn[] = [
  { name: 'lane', type: 'text', of: (task) => task.lane },
  { name: 'original_payload', type: 'bytea', of: (task) => task.payload },
  { name: 'status', type: 'text', of: (task) => task.status },
  { name: 'attempt', type: 'int4', of: (task) => countOf(task.attempt) },
  { name: 'max_retries', type: 'int4', of: (task) => countOf(task.maxAttempts - 1) },
  { name: 'uncounted', type: 'int4', of: (task) => countOf(task.uncounted) },
  { name: 'delay_ms', type: 'float8', of: (task) => boundedMs(task.delayMs) },
  { name: 'generation', type: 'int4', of: (task) => countOf(task.generation) },
  { name: 'claims', type: 'int4', of: (task) => countOf(task.claims) },
  { name: 'arrived', type: 'bool', of: (task) => task.arrived },
  { name: 'cancelling', type: 'bool', of: (task) => task.cancelling },
  { name: 'blocked', type: 'bool', of: (task) => task.blocked },
  { name: 'arrival', type: 'int8', of: (task) => task.arrival },
  { name: 'verdict', type: 'text', of: (task) => task.verdict },
  { name: 'policy', type: 'text', of: (task) => task.policy },
  { name: 'ordering_key', type: 'text', of: (task) => task.orderingKey },
  { name: 'on_dead', type: 'text', of: (task) => task.onDead },
  { name: 'job', type: 'int8', of: (task) => task.job },
  { name: 'trial', type: 'bool', of: (task) => task.trial ?? false },
  { name: 'edited', type: 'int4', of: (task) => task.edited && countOf(task.edited) },
  {
    name: 'expires_at',
    type: 'float8',
    of: (task) => boundedMs(task.expiresAtMs),
    as: timeAt('u.expires_at'),
  },
  { name: 'context', type: 'json', of: (task) => task.context && JSON.stringify(task.context) },
  { name: 'error_reason', type: 'text', of: (task) => kept(task.failure?.message) },
  { name: 'failure', type: 'json', of: (task) => failureColumns(task.failure).rest },
];

/** Fixed when a task is stored: its identity. */
const identity: readonly TaskColumn[] = [
  { name: 'message_id', type: 'uuid', of: (task) => task.messageId },
  { name: 'original_queue', type: 'text', of: (task) => queueNameOf(task.destination.address) },
  { name: 'kind', type: 'text', of: (task) => task.destination.kind },
];

const newOnly: readonly TaskColumn[] = [
  {
    name: 'address',
    type: 'text',
    of: ({ destination: { address } }) => (queueNameOf(address) === address ? null : address),
  },
];

/** Times and the lease, which only a stored task has. */
const storedOnly: readonly TaskColumn[] = (
  [
    ['next_retry_at', (task) => task.dueAtMs],
    ['visible_at', (task) => task.visibleAtMs],
    ['first_at', (task) => task.firstAtMs],
    ['finished_at', (task) => task.finishedAtMs],
  ] satisfies [string, (task: Task) => number | undefined][]
).map(([name, of]) => ({
  name,
  type: 'float8',
  of: (task) => boundedMs(of(task as Task)),
  as: timeAt(`u.${name}`),
}));

const lease: TaskColumn = { name: 'lease', type: 'int8', of: (task) => (task as Task).lease };

export function identityColumns(
  keys: readonly { messageId: string; destination: Destination }[],
): Column[] {
  return [
    { name: 'message_id', type: 'uuid', values: keys.map(({ messageId }) => messageId) },
    {
      name: 'original_queue',
      type: 'text',
      values: keys.map(({ destination }) => queueNameOf(destination.address)),
    },
    { name: 'kind', type: 'text', values: keys.map(({ destination }) => destination.kind) },
  ];
}

/** Whatever else somebody asks for cannot be there. */
export function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

/** What a new task takes into its row, besides its times. What no task of the batch has stays at its default. */
export function columnsOfNew(tasks: readonly NewTask[]): { columns: Column[]; sql: ColumnSql[] } {
  const used = [...identity, ...newOnly, ...mutable]
    .filter(({ name, of }) => tasks.some((task) => !isDefault(name, of(task))))
    .map((column) => ({ column, values: tasks.map(column.of) }));
  return shape(used, { attempt: '0', status: `'pending'` });
}

function isDefault(name: string, value: Element | null | undefined): boolean {
  return value == null || value === defaults[name];
}

/** What differs between tasks as they were read and as they are to be. */
export function columnsOfChange(changes: readonly { before: Task; after: Task }[]): {
  columns: Column[];
  sql: ColumnSql[];
} {
  const used = [...mutable, ...storedOnly, lease]
    .map((column) => ({ column, values: changes.map(({ after }) => column.of(after)) }))
    .filter(({ column, values }) =>
      changes.some(({ before }, i) => (column.of(before) ?? null) !== (values[i] ?? null)),
    );
  return shape(used, { attempt: 'q.attempt', status: 'q.status' });
}

/** A column, and the expression over `u` that gives its value. */
interface ColumnSql {
  name: string;
  value: string;
}

/** Left out of an insert where all of a batch have these: the short way for fresh work. */
const defaults: Readonly<Record<string, Element>> = {
  status: 'pending',
  attempt: 0,
  uncounted: 0,
  delay_ms: 0,
  generation: 0,
  claims: 0,
  arrived: false,
  cancelling: false,
  blocked: false,
  trial: false,
};

/** With what stands for a count or a status that is not among them. */
function shape(
  used: readonly { column: TaskColumn; values: Column['values'] }[],
  others: { attempt: string; status: string },
): { columns: Column[]; sql: ColumnSql[] } {
  const columns = used.map(({ column: { name, type }, values }) => ({ name, type, values }));
  const sql = used.map(({ column: { name, as = `u.${name}` } }) => ({ name, value: as }));
  const has = (name: string) => used.some(({ column }) => column.name === name);
  // The contract's own count follows from ours.
  if (has('attempt') || has('status')) {
    const attempt = has('attempt') ? 'u.attempt' : others.attempt;
    const status = has('status') ? 'u.status' : others.status;
    sql.push({ name: 'retry_count', value: retryCountOf(attempt, status) });
  }
  return { columns, sql };
}
