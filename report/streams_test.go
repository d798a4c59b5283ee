package report

import (
	"strings"
	"testing"

	"github.com/mqttload/mqttload/result"
)

func TestStreams(t *testing.T) {
	var b strings.Builder
	err := Streams(&b, "qos=1", []result.StreamAccount{
		{Launch: 1, Topic: "=cmd", Publisher: "p,1", Subscriber: "s", Sent: 10, Delivered: 8, Lost: 2, Duplicated: 1, FirstLost: 0, LastLost: 7, Timed: 8, MeanNS: 1500.6},
		{Launch: 2, Stream: 3, Topic: "t", Sent: 5, Delivered: 5, FirstLost: -1, LastLost: -1},
	})
	want := "qos=1,1,0,'=cmd,\"p,1\",s,10,8,2,1,0,0,0,0,0,7,8,1501\nqos=1,2,3,t,,,5,5,0,0,0,0,0,0,,,0,\n"
	if err != nil || b.String() != want {
		t.Errorf("%q, %v", b.String(), err)
	}
	if n := strings.Count(strings.Split(want, "\n")[1], ",") + 1; n != len(StreamColumns) {
		t.Errorf("%d columns, %d names", n, len(StreamColumns))
	}
}
