export { createService, type Service, type ServiceOptions } from './service.ts';
export { ServiceError, type ServiceErrorCode } from './service-error.ts';
export { type Config, defineConfig, type FromEnvironment } from './settings/file.ts';
export {
  type Origin,
  readSettings,
  type SettingFault,
  type SettingsInput,
  type SettingsReading,
} from './settings/read.ts';
export type { Part, Role, Settings, Token } from './settings/settings.ts';
export type { WiringOptions } from './wiring-options.ts';
export { encodeJson, encodeProtobuf, type RetryMessage } from './scheduler/retry-message.ts';
