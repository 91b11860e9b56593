/** One player in a process of its own, so that none runs on what another left compiled. It does what its case asks. */
import { loadPlayer } from './players.ts';

export interface Order {
  method: string;
  args: readonly unknown[];
}

export type Answer = { result: unknown } | { fault: string };

const player = await loadPlayer(process.argv[2] ?? '');
process.on('message', (order: Order) => {
  void obey(order).then((answer) => process.send?.(answer));
});
process.on('disconnect', () => process.exit());

async function obey({ method, args }: Order): Promise<Answer> {
  try {
    const act = player[method as keyof typeof player] as
      | ((...given: readonly unknown[]) => Promise<unknown>)
      | undefined;
    if (!act) throw new Error(`it cannot ${method}`);
    return { result: await act.apply(player, [...args]) };
  } catch (error) {
    return { fault: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}
