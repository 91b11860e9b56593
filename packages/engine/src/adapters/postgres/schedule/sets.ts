/** Which rows of `retry_queue` there are indexes for. A statement that says it in just these words finds them. */

/** Waits, and was not claimed since it was last settled. */
export const due = `status = 'pending' AND NOT blocked AND claims = 0`;

/** Was claimed since it was last settled: in delivery, or lost. */
export const claimed = `status = 'pending' AND claims > 0`;

/** In delivery, and a failure arrived meanwhile. */
export const arrived = `arrived AND lease IS NOT NULL`;

/** Of an ordered task: holds its place, so that those behind it wait. What `holdsPlace` says of one. */
export const holding = `ordering_key IS NOT NULL AND (status = 'pending' OR status = 'failed' AND on_dead IS NULL)`;

/** Of an ordered task: has its turn. */
export const active = `${holding} AND status = 'pending' AND NOT blocked`;

/** Replayed by a bulk job, and on its way. */
export const underway = `job IS NOT NULL AND status = 'pending'`;

/** Replayed by a bulk job: handed over to a broker, or cancelled on its way. */
export const ended = `job IS NOT NULL AND status IN ('retried', 'cancelled')`;
