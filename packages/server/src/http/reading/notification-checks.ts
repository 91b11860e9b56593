/** What is wrong with a notification or a report: what its schema says, and what the service would say after it, at once. */
import type { NotificationFault, Notifications } from '@redrive/notifications';
import type { Static, TSchema } from 'typebox';
import { failureOf, newNotificationOf } from '../../notifications/wire.ts';
import {
  FailureBody,
  FailureItem,
  NotificationItem,
  SuccessBody,
  SuccessItem,
} from '../schemas/notifications.ts';
import { pointer, type WireFault } from './faults.ts';
import { checkOf, joinFaults } from './validate.ts';

type Service = Pick<Notifications, 'faultsOf' | 'reportFaultsOf'>;
/** Undefined where the schema finds nothing: what the service refuses then has a code of its own. */
type Check = (service: Service, value: unknown) => WireFault[] | undefined;

export const checkNotification = checkWithService(NotificationItem, (service, item) =>
  service.faultsOf(newNotificationOf(item as Static<typeof NotificationItem>)),
);

export const checkFailure = checkOfReport(FailureBody);
export const checkSuccess = checkOfReport(SuccessBody);
export const checkFailureItem = checkOfReport(FailureItem);
export const checkSuccessItem = checkOfReport(SuccessItem);

function checkOfReport(schema: TSchema): Check {
  return checkWithService(schema, (service, given) => {
    const report = given as Static<typeof FailureBody>;
    return service.reportFaultsOf(failureOf('of the path', report));
  });
}

function checkWithService(
  schema: TSchema,
  later: (service: Service, value: object) => readonly NotificationFault[],
): Check {
  const check = checkOf(schema);
  return (service, value) => {
    const found = check(value, 'body');
    if (!found || typeof value !== 'object' || value === null) return found;
    return joinFaults(found, later(service, value).map(onWire));
  };
}

function onWire({ path, code, message }: NotificationFault): WireFault {
  return { in: 'body', path: pointer(path.split('.')), code, message };
}
