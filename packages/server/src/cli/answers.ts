/**
 * Answers as commands take them. Whatever listens at a URL may say anything: what is read without a second look is
 * looked at here, and nothing else, so that a server of another version may say more.
 */
import type {
  Acted,
  AttemptView,
  AuditView,
  DestinationView,
  ErrorView,
  GroupView,
  ErasedItem,
  ItemDetail,
  ItemView,
  JobView,
  LaneChange,
  LaneCounts,
  LaneView,
  MemberView,
  Page,
  Preview,
  ReadyView,
  Receipt,
  Receipts,
  TaskDetail,
  TaskView,
} from './wire.ts';

/** Whether data is what it is taken for. */
export type Guard<T> = (data: unknown) => data is T;

type Check = (data: unknown) => boolean;

const text: Check = (data) => typeof data === 'string';
const number: Check = (data) => typeof data === 'number';
const flag: Check = (data) => typeof data === 'boolean';

const destination = object<DestinationView>({ kind: text, address: text });

const failure = object<ErrorView>({ class: maybe(text), code: maybe(text), message: maybe(text) });

const attempt = object<AttemptView>({
  attempt: number,
  generation: number,
  at: text,
  duration_ms: number,
  error: failure,
  answer: maybe(text),
});

const task = {
  message_id: text,
  destination,
  lane: text,
  status: text,
  retry_count: number,
  max_retries: number,
  generation: number,
  due_at: text,
  created_at: text,
  expires_at: maybe(text),
  finished_at: maybe(text),
  ordering_key: maybe(text),
  policy: maybe(text),
  error: maybe(failure),
};

const item = {
  id: number,
  message_id: text,
  reason: text,
  state: text,
  error: failure,
  destination,
  lane: text,
  fingerprint: text,
  retry_count: number,
  max_retries: number,
  occurrences: number,
  first_seen_at: text,
  last_seen_at: text,
  closed_at: maybe(text),
  closed_by: maybe(text),
};

export const isTask = object<TaskView>(task);

export const isTaskDetail = object<TaskDetail>({
  ...task,
  attempts: list(attempt),
  headers: maybe(texts),
  payload_base64: maybe(text),
});

export const isReceipt = object<Receipt>({
  status_of_request: text,
  message_id: text,
  status: text,
  due_at: maybe(text),
  warning: maybe(text),
});

export const isReceipts = object<Receipts>({
  accepted: list(object<Receipts['accepted'][number]>({ result: text })),
  rejected: list(
    object<Receipts['rejected'][number]>({
      index: number,
      code: text,
      path: maybe(text),
      message: maybe(text),
    }),
  ),
});

export const isActed = object<Acted>({ message_id: text, result: text });

export const isItem = object<ItemView>(item);

const detail = {
  ...item,
  attempts: maybe(list(attempt)),
  headers: maybe(texts),
  payload_base64: maybe(text),
  edit: maybe(object<NonNullable<ItemDetail['edit']>>({ payload_base64: maybe(text) })),
  difference: maybe(list(object<NonNullable<ItemDetail['difference']>[number]>({ path: text }))),
};

export const isItemDetail = object<ItemDetail>(detail);

export const isErasedItem = object<ErasedItem>({
  ...detail,
  // A server of an older version does not say.
  not_reached: maybe(
    list(object<ErasedItem['not_reached'][number]>({ what: text, why: text, todo: text })),
  ),
});

export const isGroup = object<GroupView>({
  fingerprint: text,
  lane: text,
  reason: text,
  error: failure,
  open: number,
  last_seen_at: text,
  note: maybe(text),
  owner: maybe(text),
});

export const isPreview = object<Preview>({ count: number, sample: list(isItem) });

export const isJob = object<JobView>({
  id: number,
  action: text,
  state: text,
  by: maybe(text),
  why: maybe(text),
  total: number,
  done: number,
  skipped: number,
  failed: number,
  ignored: maybe(number),
  left: number,
  underway: number,
  taken: number,
  back: number,
  canary: list(number),
  step: maybe(number),
  per_second: maybe(number),
  created_at: text,
});

export const isMember = object<MemberView>({ item_id: number, result: maybe(text) });

export const isLane = object<LaneView>({
  lane: text,
  state: text,
  running: number,
  next_in_ms: maybe(number),
  blocked: maybe(number),
  blocked_by: maybe(number),
  paused_by: maybe(text),
  probe_in_ms: maybe(number),
  limits: maybe(
    object<NonNullable<LaneView['limits']>>({
      concurrency: maybe(number),
      rate_per_second: maybe(number),
    }),
  ),
});

export const isLaneCounts = object<LaneCounts>({ counts: numbers });

export const isLaneChange = object<LaneChange>({
  lane: text,
  paused: flag,
  known: maybe(flag),
  was_paused: maybe(flag),
});

/** What is in an event is for whoever reads it: a trail may be old, or damaged. */
export const isAuditEntry = object<AuditView>({ event: object<AuditView['event']>({}) });

export const isReady = object<ReadyView>({
  ready: flag,
  checks: list(object<ReadyView['checks'][number]>({ name: text, ok: flag, detail: maybe(text) })),
});

export function isPageOf<T>(isOne: Guard<T>): Guard<Page<T>> {
  return object<Page<T>>({ items: list(isOne), next_cursor: maybe(text) });
}

/** With these fields, and any others. */
function object<T>(fields: { readonly [K in keyof T]?: Check }): Guard<T> {
  const checks = Object.entries(fields) as [string, Check][];
  return (data): data is T => {
    if (typeof data !== 'object' || data === null) return false;
    return checks.every(([name, check]) => check((data as Record<string, unknown>)[name]));
  };
}

function list(check: Check): Check {
  return (data) => Array.isArray(data) && data.every((one) => check(one));
}

function maybe(check: Check): Check {
  return (data) => data == null || check(data);
}

/** Texts by name. */
function texts(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Object.values(data).every(text);
}

/** Numbers by name. */
function numbers(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Object.values(data).every(number);
}
