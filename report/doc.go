// Package report renders results, for people and for other programs.
//
// [Write] renders a [result.Report] in one of the [Formats]: the console's table in
// BenchmarkDotNet's manner, markdown, CSV, JSON, NDJSON, JUnit XML, the Go benchmark
// format, an HdrHistogram log, and an HTML page with charts. [WriteComparison] and
// [WriteAudit] do so for comparisons and audits, [StepSummary] and [ErrorLines] for GitHub
// Actions, [Streams] for the accounts of single streams, and [BDNLine] and [Progress] are
// lines of a log while a run goes on. A new format is one function and one row of writers.
//
// A table of columns with unescaped text is behind every tabular format. Each format
// escapes for its own readers: ids, reasons and messages come from files and from brokers,
// and must not move a cursor, start markup or become a formula.
//
// The package decides nothing: what a case broke, whether a gate passed and which warnings
// there are is in the result already. It computes no statistics, except that the charts
// read the curves of percentiles and rates from histograms and timelines. It opens no file
// and does not know the terminal: everything is written to an io.Writer.
package report
