import { deepEqual, equal, notEqual, ok } from 'node:assert/strict';
import {
  type BrokerCases,
  confirm,
  LIMIT,
  message,
  publish,
  receive,
  textOf,
} from './broker-fixtures.ts';
import { bytes } from '../fixtures.ts';

export const publishCases: BrokerCases = {
  'confirms a message and brings it over': async (stage) => {
    const queue = await stage.queue();
    const payload = Uint8Array.from({ length: 256 }, (_, i) => i);
    const headers = { 'x-text': 'ünï 🚀', 'x-retry-count': 3, 'x-empty': '' };
    const contentType = 'application/x-protobuf';
    await confirm(stage.broker, [{ address: queue, payload, headers, contentType }]);
    const [got] = await receive(stage, queue, 1);
    deepEqual(Uint8Array.from(got!.payload), payload);
    for (const [name, value] of Object.entries(headers))
      equal(String(got!.headers[name]), `${value}`);
    deepEqual([got!.contentType, got!.redelivered], [contentType, false]);
  },

  'keeps numbers among the headers as numbers': {
    needs: 'typedHeaders',
    run: async (stage) => {
      const queue = await stage.queue();
      const headers = { 'x-retry-count': 3 };
      await confirm(stage.broker, [{ address: queue, payload: bytes('1'), headers }]);
      const [got] = await receive(stage, queue, 1);
      equal(got!.headers['x-retry-count'], 3);
    },
  },

  'brings over an empty message and one of 1 MiB, or the largest it takes': async (stage) => {
    const queue = await stage.queue();
    const length = Math.min(1024 * 1024, stage.broker.capabilities.maxMessageBytes);
    const large = Uint8Array.from({ length }, (_, i) => (i * 31) % 251);
    await confirm(stage.broker, [
      { address: queue, payload: new Uint8Array(), headers: {} },
      { address: queue, payload: large, headers: {} },
    ]);
    const [empty, full] = await receive(stage, queue, 2);
    equal(empty!.payload.length, 0);
    ok(Buffer.from(full!.payload).equals(large));
  },

  'keeps the order of one queue': async (stage) => {
    const queue = await stage.queue();
    const texts = Array.from({ length: 200 }, (_, i) => String(i));
    await confirm(
      stage.broker,
      texts.slice(0, 120).map((text) => message(queue, text)),
    );
    await confirm(
      stage.broker,
      texts.slice(120).map((text) => message(queue, text)),
    );
    deepEqual((await receive(stage, queue, 200)).map(textOf), texts);
  },

  'takes nothing at all': async ({ broker }) => {
    deepEqual(broker.publish([], LIMIT), []);
  },

  'takes batches at the same time': async (stage) => {
    const queue = await stage.queue();
    await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        confirm(
          stage.broker,
          Array.from({ length: 20 }, (_1, k) => message(queue, `${i} ${k}`)),
        ),
      ),
    );
    const got = await receive(stage, queue, 200);
    equal(new Set(got.map(textOf)).size, 200);
  },

  'brings each message to its own queue': async (stage) => {
    const [one, two] = [await stage.queue(), await stage.queue()];
    notEqual(one, two);
    await confirm(stage.broker, [message(one, '1'), message(two, '2'), message(one, '3')]);
    deepEqual((await receive(stage, one, 2)).map(textOf), ['1', '3']);
    deepEqual((await receive(stage, two, 1)).map(textOf), ['2']);
  },

  'takes one that goes alone like any other': async (stage) => {
    const queue = await stage.queue();
    const options = { ...LIMIT, alone: true };
    const alone = stage.broker.publish([message(queue, '1')], options);
    const together = stage.broker.publish([message(queue, '2'), message(queue, '3')], LIMIT);
    deepEqual(
      (await Promise.all([...alone, ...together])).map(({ outcome }) => outcome),
      ['confirmed', 'confirmed', 'confirmed'],
    );
    deepEqual((await receive(stage, queue, 3)).map(textOf).toSorted(), ['1', '2', '3']);
  },

  'says where nobody is, and spoils no other message by it': {
    needs: 'returnsUnroutable',
    run: async (stage) => {
      const queue = await stage.queue();
      const lost = message(stage.nowhere, 'lost');
      const batch = [message(queue, '1'), lost, message(queue, '2'), lost, message(queue, '3')];
      const outcomes = (await publish(stage.broker, batch)).map(({ outcome }) => outcome);
      const [yes, no] = ['confirmed', 'unroutable'];
      deepEqual(outcomes, [yes, no, yes, no, yes]);
      deepEqual((await receive(stage, queue, 3)).map(textOf), ['1', '2', '3']);
    },
  },

  'leaves the bytes of a message to its publisher': async (stage) => {
    const queue = await stage.queue();
    const payload = bytes('kept');
    await confirm(stage.broker, [{ address: queue, payload, headers: {} }]);
    payload.fill(0);
    deepEqual((await receive(stage, queue, 1)).map(textOf), ['kept']);
  },
};
