/** A look at NATS: whether it lets us in, whether JetStream answers, and whether failed messages can come in. */
import { hiddenUrl } from '../settings/hide.ts';
import type { Settings } from '../settings/settings.ts';
import { type Finding, findingsAbout } from './finding.ts';

const finding = findingsAbout('nats');

const CONNECT_MS = 5000;
const quiet = () => undefined;

/** Makes nothing: streams are looked for, and the next start makes what is missing. */
export async function examineNats(settings: Settings): Promise<Finding[]> {
  const { natsUrl, natsRetrySubject } = settings;
  if (natsUrl === undefined) return [];
  const at = natsUrl.map((url) => hiddenUrl(url)).join(', ');
  const [{ nats }, { natsConnection }] = await Promise.all([
    import('@redrive/engine/nats'),
    import('../nats-wiring.ts'),
  ]);
  const broker = nats({
    ...natsConnection(settings),
    connectTimeout: CONNECT_MS,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  });
  try {
    await broker.open();
    const { state, why = '' } = broker.state;
    if (state !== 'connected') return [notWell(at, why)];
    return [finding('fine', `NATS at ${at} lets us in.`), await intake(broker, natsRetrySubject)];
  } finally {
    await broker.close();
  }
}

async function intake(
  broker: { hasStream(subject: string): Promise<boolean> },
  subject: string,
): Promise<Finding> {
  if (await broker.hasStream(subject)) return finding('fine', `A stream has ${subject}.`);
  return finding('note', `No stream has ${subject} yet.`, 'The next redrive serve makes it.');
}

function notWell(at: string, why: string): Finding {
  return finding(
    'broken',
    `NATS at ${at} is not usable. ${why}`,
    'Is it running with JetStream, and are NATS_URL and the credentials right? Tasks for subjects wait until it is back; nothing is lost.',
  );
}
