import { arrivalCases } from './schedule-arrival.ts';
import { changeCases } from './schedule-change.ts';
import { claimCases } from './schedule-claim.ts';
import { abandonCases, claimExpiredCases, claimLostCases } from './schedule-claim-lost.ts';
import { fencingCases } from './schedule-fencing.ts';
import { insertCases } from './schedule-insert.ts';
import { getCases, lanesCases, listCases } from './schedule-read.ts';
import { orderCases } from './schedule-order.ts';
import { orderDeadCases } from './schedule-order-dead.ts';
import { renewCases } from './schedule-renew.ts';
import { settleCases } from './schedule-settle.ts';
import { stateCases } from './schedule-state.ts';
import { transactionCases } from './schedule-transactions.ts';
import { outboxCases, pruneCases } from './schedule-upkeep.ts';
import { lifecycleCases, watchCases } from './schedule-watch.ts';
import { onStage, type StoreCases, type StoreSetup } from '../stage.ts';
import { casesOf, type ConformanceCase } from '../suite.ts';

/** Every promise of the port `Schedule`, one by one. */
export function scheduleSuite(setup: StoreSetup): ConformanceCase[] {
  return casesOf(tables, setup.capabilities, (body) => onStage(setup, body));
}

const tables: Readonly<Record<string, StoreCases>> = {
  insert: insertCases,
  change: changeCases,
  'claim due': claimCases,
  'claim lost': claimLostCases,
  'claim expired': claimExpiredCases,
  abandon: abandonCases,
  settle: settleCases,
  fencing: fencingCases,
  arrival: arrivalCases,
  renew: renewCases,
  order: orderCases,
  'order after a failure': orderDeadCases,
  get: getCases,
  list: listCases,
  lanes: lanesCases,
  state: stateCases,
  prune: pruneCases,
  outbox: outboxCases,
  watch: watchCases,
  transactions: transactionCases,
  lifecycle: lifecycleCases,
};
