package interop

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mqttload/mqttload/tlsconf"
)

var mosquittoVersions = []string{"mqttv31", "mqttv311", "mqttv5"}

// lines returns n different lines.
func lines(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("message %d", i))
	}
	return list
}

// subscribe starts mosquitto_sub on filter, which must match ready, and returns when
// it has subscribed: a retained message on ready has arrived.
func subscribe(t *testing.T, port, filter, ready string, args ...string) *process {
	t.Helper()
	command(t, "", need(t, "mosquitto_pub"), "-p", port, "-r", "-q", "1", "-t", ready, "-m", "ready")
	args = append([]string{"-p", port, "-t", filter, "-F", "%r %t %p"}, args...)
	p := start(t, need(t, "mosquitto_sub"), args...)
	awaitLine(t, p, p.stdout, "1 "+ready+" ready")
	return p
}

// take reads n lines of the output of mosquitto_sub.
func take(t *testing.T, p *process, n int) (list []string) {
	t.Helper()
	for range n {
		if !p.stdout.Scan() {
			t.Fatalf("mosquitto_sub ended after %q", list)
		}
		list = append(list, p.stdout.Text())
	}
	return list
}

// TestMosquittoClients routes messages between the clients of Mosquitto, from each
// version to each version, at each QoS.
func TestMosquittoClients(t *testing.T) {
	pub := need(t, "mosquitto_pub")
	b := startEmbedded(t)
	sent := lines(100)
	for _, from := range mosquittoVersions {
		for _, to := range mosquittoVersions {
			for qos := range 3 {
				name := fmt.Sprintf("%s/%s/%d", from, to, qos)
				t.Run(name, func(t *testing.T) {
					q := fmt.Sprint(qos)
					p := subscribe(t, b.port, name+"/+", name+"/ready", "-q", q, "-V", to)
					command(t, strings.Join(sent, "\n")+"\n", pub, "-p", b.port, "-V", from, "-q", q, "-t", name+"/lines", "-l")
					got := take(t, p, len(sent))
					for i := range got {
						if want := "0 " + name + "/lines " + sent[i]; got[i] != want {
							t.Fatalf("line %d is %q, want %q", i, got[i], want)
						}
					}
				})
			}
		}
	}
}

func TestMosquittoRetained(t *testing.T) {
	pub, sub := need(t, "mosquitto_pub"), need(t, "mosquitto_sub")
	b := startEmbedded(t)
	for _, v := range mosquittoVersions {
		retain := func(topic string, what ...string) {
			command(t, "", pub, append([]string{"-p", b.port, "-V", v, "-q", "1", "-r", "-t", v + topic}, what...)...)
		}
		retain("/a", "-m", "old")
		retain("/a", "-m", "new")
		retain("/b", "-m", "gone")
		retain("/b", "-n") // an empty payload removes it
		retain("/c", "-m", "kept")
		got := strings.Split(strings.TrimSpace(command(t, "", sub, "-p", b.port, "-V", v, "-q", "1", "-t", v+"/#", "-C", "2", "-F", "%r %t %p")), "\n")
		slices.Sort(got)
		if want := []string{"1 " + v + "/a new", "1 " + v + "/c kept"}; !slices.Equal(got, want) {
			t.Errorf("%s: retained %q, want %q", v, got, want)
		}
	}
}

// TestMosquittoWill: the will of a killed client is published, that of a client that
// disconnects is not.
func TestMosquittoWill(t *testing.T) {
	pub := need(t, "mosquitto_pub")
	b := startEmbedded(t)
	for _, v := range mosquittoVersions {
		t.Run(v, func(t *testing.T) {
			watcher := subscribe(t, b.port, v+"/will/+", v+"/will/ready", "-q", "1")
			polite := subscribe(t, b.port, v+"/polite/+", v+"/polite/ready", "-V", v, "-C", "2",
				"--will-topic", v+"/will/polite", "--will-payload", "wrong")
			command(t, "", pub, "-p", b.port, "-t", v+"/polite/bye", "-m", "bye") // its second message: it disconnects
			take(t, polite, 1)
			if polite.stdout.Scan() {
				t.Fatalf("unexpected %q", polite.stdout.Text())
			}
			killed := subscribe(t, b.port, v+"/killed/+", v+"/killed/ready", "-V", v,
				"--will-topic", v+"/will/killed", "--will-payload", "gone", "--will-qos", "1")
			if err := killed.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if got, want := take(t, watcher, 1)[0], "0 "+v+"/will/killed gone"; got != want {
				t.Errorf("watcher got %q, want %q", got, want)
			}
		})
	}
}

// TestMosquittoTLS: the certificate of mqttload broker --tls satisfies OpenSSL
// with its own CA, and with no other.
func TestMosquittoTLS(t *testing.T) {
	pub, sub := need(t, "mosquitto_pub"), need(t, "mosquitto_sub")
	b := startEmbedded(t)
	for _, v := range mosquittoVersions {
		topic := "tls/" + v
		tls := []string{"-h", "127.0.0.1", "-p", b.tlsPort, "--cafile", b.ca, "-V", v, "-q", "1", "-t", topic}
		command(t, "", pub, append(tls, "-r", "-m", "secret")...)
		if got := command(t, "", sub, append(tls, "-C", "1")...); got != "secret\n" {
			t.Errorf("%s: got %q", v, got)
		}
	}
	other, err := tlsconf.ThrowAway(nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(ca, other.CAPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := try(t, "", pub, "-h", "127.0.0.1", "-p", b.tlsPort, "--cafile", ca, "-t", "a", "-m", "b"); code == 0 {
		t.Errorf("a client with another CA was content: %s", stderr)
	}
}
