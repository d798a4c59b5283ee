package report

// htmlComparison is a comparison as the template shows it.
type htmlComparison struct {
	Lines    []string
	Table    htmlTable
	Sections []section
}
