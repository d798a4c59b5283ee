// Package text is how this program words things: numbers with their nouns,
// durations, sizes in bytes, suggestions for misspelled names, and foreign text
// that is safe to print. It holds what several packages must say alike, and
// imports none of them; times and tables, which only reports print, are not here.
package text
