// Package result holds what a run measured, and what can be concluded from it.
//
// A [Report] is one report file. It has one [Case] for every row of the table, and a Case
// has its [Iteration]s, its latencies as a [Histogram] each, and the [Delivery] account of
// every message. The package reads and writes report files ([Read], [Write]), and reads
// tables and files of other tools as an [Input] ([ReadAny]).
//
// Every conclusion is drawn here, once, so that all outputs say the same. [Analyze] finds
// the warnings that follow from a case. [Case.Broken] is the only judge of the delivery
// contract: exit code, JUnit, HTML, GitHub, Compare and Audit ask it. [Error.Remedy] knows
// what helps against a fault. A [Gate] judges one number of a case, [Compare] tests two
// runs against each other, [Merge] adds up the runs of several machines, and [Audit]
// checks a file against itself. The pure statistics are in package result/stats.
//
// The package renders nothing, which is what package report does, opens no connection,
// and does not know the engine: reports can be read, compared and merged without it.
package result
