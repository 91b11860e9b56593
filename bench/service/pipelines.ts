import { NatsStage } from './stage/nats-stage.ts';
import { pipelineCase } from './pipeline.ts';
import { bareNatsPipeline, barePipeline, redrive } from './stage/program.ts';
import { Stage } from './stage/stage.ts';

export const pipeline = pipelineCase({
  name: 'pipeline',
  about:
    'messages of 300 bytes from RabbitMQ through PostgreSQL to RabbitMQ, until the last is on its queue',
  broker: 'RabbitMQ',
  contestants: {
    redrive: { program: redrive },
    'redrive-no-audit': { program: redrive, env: { REDRIVE_AUDIT: 'false' } },
    raw: { program: barePipeline },
  },
  openStage: () => new Stage(),
});

export const natsPipeline = pipelineCase({
  name: 'nats-pipeline',
  about: 'messages of 300 bytes from JetStream through PostgreSQL to JetStream',
  broker: 'NATS',
  contestants: { redrive: { program: redrive }, raw: { program: bareNatsPipeline } },
  openStage: () => new NatsStage(),
});
