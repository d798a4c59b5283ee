package report

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"github.com/mqttload/mqttload/result"
)

// StreamColumns are the columns that [Streams] writes, for the first row.
var StreamColumns = []string{
	"case", "launch", "stream", "topic", "publisher", "subscriber", "sent", "delivered", "lost",
	"duplicated", "redelivered", "reordered", "corrupted", "late", "first_lost", "last_lost", "timed", "mean_ns",
}

// Streams writes the accounts of a case's streams as rows of CSV. Numbers that do not
// exist are empty.
func Streams(w io.Writer, caseID string, rows []result.StreamAccount) error {
	out := csv.NewWriter(w)
	for i := range rows {
		_ = out.Write(streamRow(caseID, &rows[i])) // see Error below
	}
	out.Flush()
	return out.Error()
}

func streamRow(caseID string, a *result.StreamAccount) []string {
	row := []string{csvText(caseID), strconv.Itoa(a.Launch), strconv.Itoa(a.Stream), csvText(a.Topic), csvText(a.Publisher), csvText(a.Subscriber)}
	for _, n := range []int64{a.Sent, a.Delivered, a.Lost, a.Duplicated, a.Redelivered, a.Reordered, a.Corrupted, a.Late} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	for _, n := range []int64{a.FirstLost, a.LastLost} {
		text := ""
		if n >= 0 {
			text = strconv.FormatInt(n, 10)
		}
		row = append(row, text)
	}
	mean := ""
	if a.Timed > 0 {
		mean = strconv.FormatInt(int64(math.Round(a.MeanNS)), 10)
	}
	return append(row, strconv.FormatInt(a.Timed, 10), mean)
}
