/** Which rows of `retry_queue` there are indexes for. A statement that says it in just these words finds them. */

/** Waits, and was not claimed since it was last settled. */
export const due = `status = 'pending' AND NOT blocked AND claims = 0`;

/** Was claimed since it was last settled: in delivery, or lost. */
export const claimed = `status = 'pending' AND claims > 0`;

/** In delivery, and a failure arrived meanwhile. */
export const arrived = `arrived AND lease IS NOT NULL`;
