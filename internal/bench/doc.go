// Package bench is one run, from its settled cases to its judged report: what a
// command line, a worker of a fleet and a search for capacity have in common.
//
// A [Config] holds what was decided: cases, gates, a baseline. Its Check refuses
// what this machine cannot do, and its Plan is the answer to a dry run. [Open]
// starts the embedded broker if a case needs it, and [Run.Run] connects to each
// target once, measures, completes the report, and judges it by [Judge]. What is
// wrong comes back as [Faults], each of a [Class].
//
// The package knows no flags, environment, streams, signals or exit codes, and
// it writes no files: it returns what is to be printed. A command line maps each
// Class to an exit code. The Observer of a Config shows the run, and its Phase can
// keep several runs in step.
package bench
