// Package report renders a result.Report: the console table in
// BenchmarkDotNet's manner, the same table as markdown, and the lines of a live
// log. JSON is result.Encode. It formats and writes to the io.Writer it is
// given; it computes no statistics and knows neither network nor terminal.
//
// A Table is the model behind every tabular format: columns of unescaped text.
// Each format escapes for its own readers.
package report
