export {
  type OpenedRepository,
  repositorySuite,
  type RepositorySetup,
} from './repository/repository-suite.ts';
