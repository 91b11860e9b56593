import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { Task } from '../../model/task.ts';
import { Actions } from './inbox/actions.ts';
import { Agenda } from './schedule/agenda.ts';
import { AuditTable } from './audit.ts';
import { Changer } from './schedule/change.ts';
import { Claimer } from './schedule/claim.ts';
import { prepareRows, type Row } from './connection.ts';
import { Eraser } from './inbox/erase.ts';
import { GroupTable } from './inbox/groups.ts';
import { InboxTable } from './inbox/inbox.ts';
import { ItemList } from './inbox/item-list.ts';
import { ItemStates } from './inbox/item-states.ts';
import { JobTable } from './inbox/jobs.ts';
import { KeyTable } from './idempotency/key-table.ts';
import { LineTable } from './schedule/line-table.ts';
import { Turns } from './schedule/lines.ts';
import { Listing } from './inbox/listing.ts';
import { OutboxTable } from './inbox/outbox.ts';
import { Pruner } from './schedule/prune.ts';
import { taskColumns, taskOf } from './rows.ts';
import { Settler } from './schedule/settle.ts';
import { StateTable } from './state.ts';
import { TaskTable } from './schedule/tasks.ts';

/** Everything that is prepared once for a connection, by subject. */
export class Statements {
  readonly actions: Actions;
  readonly agenda: Agenda;
  readonly audit: AuditTable;
  readonly changer: Changer;
  readonly claimer: Claimer;
  readonly eraser: Eraser;
  readonly groups: GroupTable;
  readonly inbox: InboxTable;
  readonly itemList: ItemList;
  readonly jobs: JobTable;
  readonly keys: KeyTable;
  readonly lines: LineTable;
  readonly outbox: OutboxTable;
  readonly pruner: Pruner;
  readonly settler: Settler;
  readonly state: StateTable;
  readonly itemStates: ItemStates;
  readonly taskList: Listing<Task>;
  readonly tasks: TaskTable;
  readonly turns: Turns;
  readonly #dataVersion: StatementSync;
  readonly #emptyLog: StatementSync;

  constructor(db: DatabaseSync) {
    this.agenda = new Agenda(db);
    this.audit = new AuditTable(db);
    this.claimer = new Claimer(db);
    this.groups = new GroupTable(db);
    this.itemStates = new ItemStates(db);
    this.inbox = new InboxTable(db, this.itemStates);
    this.itemList = new ItemList(db);
    this.jobs = new JobTable(db);
    this.keys = new KeyTable(db);
    this.lines = new LineTable(db);
    this.outbox = new OutboxTable(db);
    this.pruner = new Pruner(db, this.inbox);
    this.state = new StateTable(db);
    const selectTasks = `SELECT ${taskColumns} FROM retry_queue`;
    this.taskList = new Listing(db, 'retry_queue', selectTasks, taskOf);
    this.tasks = new TaskTable(db, this.lines);
    this.changer = new Changer(this.tasks, this.inbox, this.outbox);
    this.settler = new Settler(db, this.changer, this.inbox);
    this.turns = new Turns(db, this.lines);
    this.actions = new Actions(db, this);
    this.eraser = new Eraser(db, this);
    this.#dataVersion = prepareRows(db, 'PRAGMA data_version');
    this.#emptyLog = prepareRows(db, 'PRAGMA wal_checkpoint(TRUNCATE)');
  }

  /** Another number whenever another connection has written. */
  get dataVersion(): number {
    return (this.#dataVersion.get() as unknown as Row)[0] as number;
  }

  /** Copies the log into the file and cuts it to nothing. False: somebody reads an older state. Not in a transaction. */
  emptyLog(): boolean {
    return (this.#emptyLog.get() as unknown as Row)[0] === 0;
  }
}
