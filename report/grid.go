package report

import (
	"fmt"
	"io"
	"sync"

	"github.com/mqttload/mqttload/internal/text"
	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// narrow makes the width of characters such as μ the same in every locale, so that a
// report does not depend on the machine that renders it.
var narrow = sync.OnceFunc(func() { twwidth.SetEastAsian(false) })

// width is the number of terminal cells of s.
func width(s string) int {
	narrow()
	return twwidth.Width(s)
}

// consoleGrid writes t between bars, with dashes under the header, as
// BenchmarkDotNet's console does.
func consoleGrid(w io.Writer, t *table) error {
	return grid(w, t, text.Plain, renderer.NewBlueprint(tw.Rendition{
		Symbols:  tw.NewSymbols(tw.StyleMarkdown),
		Borders:  tw.Border{Left: tw.On, Right: tw.On, Top: tw.Off, Bottom: tw.Off},
		Settings: tw.Settings{Lines: tw.Lines{ShowHeaderLine: tw.On}},
	}))
}

// markdownGrid writes t as a GitHub table.
func markdownGrid(w io.Writer, t *table) error {
	return grid(w, t, markdownCell, renderer.NewMarkdown())
}

func grid(w io.Writer, t *table, escape func(string) string, r tw.Renderer) error {
	narrow()
	align := make(tw.Alignment, len(t.Columns))
	for i, c := range t.Columns {
		align[i] = tw.AlignLeft
		if c.Number {
			align[i] = tw.AlignRight
		}
	}
	table := tablewriter.NewTable(w, tablewriter.WithRenderer(r),
		tablewriter.WithHeaderAutoFormat(tw.Off), tablewriter.WithRowAutoFormat(tw.Off),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone), tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithAlignment(align))
	table.Header(escaped(t.header(), escape))
	for i := range t.Rows {
		if err := table.Append(escaped(t.row(i), escape)); err != nil {
			return fmt.Errorf("render table: %w", err)
		}
	}
	if err := table.Render(); err != nil {
		return fmt.Errorf("render table: %w", err)
	}
	return nil
}

func escaped(cells []string, escape func(string) string) []string {
	out := make([]string, len(cells))
	for i, s := range cells {
		out[i] = escape(shorten(s))
	}
	return out
}
