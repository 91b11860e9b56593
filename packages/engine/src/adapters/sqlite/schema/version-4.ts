/** What an item keeps of its task beside payload and context, so that a task made anew from it is the same. */
export const version4 = `
  ALTER TABLE redrive_inbox ADD COLUMN task_edited INTEGER;
  ALTER TABLE redrive_inbox ADD COLUMN task_on_dead TEXT;
`;
