// Package bench is one run, from its settled cases to its judged report: what a
// command line, a worker of a fleet and a search for capacity all need. It says
// what a run will do (planLine) and what it takes of this machine (checkHost,
// checkMemory), starts the embedded broker where there is no other target, and
// holds the results against gates and a baseline ([Judge]).
//
// What is wrong is a [Fault] of a [Class]; a command line gives the classes
// exit codes. The package knows no flags, no environment, no streams and no
// signals: it returns what is to be said, and prints nothing.
package bench
