package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// capture records a TCP port on the loopback interface, from before it returns until
// the function that it returns is called. That function returns the file.
func capture(t *testing.T, port string) (stop func() string) {
	t.Helper()
	tshark := need(t, "tshark")
	file := filepath.Join(t.TempDir(), "run.pcap")
	// The buffer is large, because the kernel drops packets if it is full. The lines
	// name the client identifiers during the capture.
	p := start(t, tshark, "-i", "lo", "-B", "64", "-f", "tcp port "+port, "-w", file,
		"-d", "tcp.port=="+port+",mqtt", "-P", "-l", "-T", "fields", "-e", "mqtt.clientid")
	if _, err := findLine(p.stderr, "Capture started"); err != nil {
		lacking(t, "tshark may not capture: it needs the rights of root: %v", err)
	}
	last, said := make(chan error, 1), make(chan []string, 1)
	go func() {
		_, err := findLine(p.stdout, "last")
		last <- err
		drop(p.stdout)
	}()
	go func() {
		var list []string
		for p.stderr.Scan() {
			list = append(list, p.stderr.Text())
		}
		said <- list
	}()
	return func() string {
		t.Helper()
		// tshark sees packets late: when it has seen this one, it has seen all.
		nc, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write([]byte("\x10\x10\x00\x04MQTT\x04\x02\x00\x00\x00\x04last")); err != nil {
			t.Fatal(err)
		}
		if err := <-last; err != nil {
			t.Fatal("tshark: ", err)
		}
		if err := p.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		for _, line := range <-said {
			if strings.Contains(line, "dropped") {
				t.Fatalf("tshark: %s", line)
			}
		}
		return file
	}
}

// faulty is a filter for packets that tshark calls malformed or a breach of the
// protocol. Its notes about TCP, such as a full window, are in the group Sequence.
const faulty = "mqtt && (_ws.malformed || _ws.expert.group == 0x05000000 || _ws.expert.group == 0x07000000 || " +
	"_ws.expert.group == 0x06000000 || _ws.expert.group == 0x09000000)" // Undecoded, Malformed, Reassemble, Protocol

// dissect runs tshark with args on file, with port as MQTT, and returns its lines.
func dissect(t *testing.T, file, port string, args ...string) []string {
	t.Helper()
	args = append([]string{"-r", file, "-d", "tcp.port==" + port + ",mqtt", "-o", "tcp.analyze_sequence_numbers:TRUE",
		"-o", "tcp.reassemble_out_of_order:TRUE"}, args...)
	out, stderr, code := try(t, "", need(t, "tshark"), args...)
	if code != 0 {
		t.Fatalf("tshark: exit code %d\n%s", code, stderr)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
}

// published counts the PUBLISH packets on the wire by version, QoS and size of the
// payload.
func published(t *testing.T, file, port string) map[string]int {
	t.Helper()
	n := map[string]int{}
	lines := dissect(t, file, port, "-Y", "mqtt.msgtype == 3", "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,",
		"-e", "mqtt.hdrflags", "-e", "mqtt.topic", "-e", "mqtt.msg")
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			t.Fatalf("%q", line)
		}
		topics, payloads, i := strings.Split(fields[1], ","), strings.Split(fields[2], ","), 0
		for flags := range strings.SplitSeq(fields[0], ",") {
			first, err := strconv.ParseUint(flags, 0, 8)
			if err != nil {
				t.Fatal(err)
			}
			if first>>4 != 3 {
				continue
			}
			topic, _, _ := strings.Cut(topics[i], "/")
			n[fmt.Sprintf("%s qos=%d payload=%d", topic, first>>1&3, len(payloads[i])/2)]++
			i++
		}
		if i != len(topics) || i != len(payloads) {
			t.Fatalf("%d PUBLISH, %d topics, %d payloads in a frame", i, len(topics), len(payloads))
		}
	}
	return n
}

// disturbed is a filter for frames after which a capture may lack bytes: a loopback
// interface delivers on all processors at once, and frames of one connection can be
// out of order, duplicated or missing in the capture.
const disturbed = "tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || tcp.analysis.out_of_order || " +
	"tcp.analysis.retransmission || tcp.analysis.zero_window"

// TestDissect captures a run of the whole matrix and dissects it: no packet may be
// malformed or cause a warning, and each message must occur as often as it was sent
// and delivered, with the QoS and the payload of its row.
func TestDissect(t *testing.T) {
	for _, name := range []string{"embedded", "mosquitto"} {
		t.Run(name, func(t *testing.T) {
			var port string
			if name == "embedded" {
				port = startEmbedded(t).port
			} else {
				port = startMosquitto(t)
			}
			// An incomplete capture proves nothing about the run: try again.
			for attempt := 1; ; attempt++ {
				file, wrong := captureMatrix(t, port)
				if wrong == "" {
					return
				}
				frames := dissect(t, file, port, "-Y", disturbed)
				if len(frames) == 0 || attempt == 3 {
					t.Fatalf("%s\n%d frames are disturbed:\n%s", wrong, len(frames), strings.Join(frames[:min(len(frames), 20)], "\n"))
				}
				t.Logf("capture %d has %d disturbed frames, so it may not be whole: %s", attempt, len(frames), wrong)
			}
		})
	}
}

// captureMatrix captures a run of every QoS, payload and version, and returns what is
// wrong with its messages. Malformed packets fail t.
func captureMatrix(t *testing.T, port string) (file, wrong string) {
	t.Helper()
	const sent = 50
	stop := capture(t, port)
	want := map[string]int{}
	for _, version := range []string{"3.1", "3.1.1", "5"} {
		run(t, "--url", "mqtt://127.0.0.1:"+port, "--topic", "v"+version+"/%i", "--qos", "0,1,2", "--payload", "10,1024,8192",
			"--protocol", version, "--messages", strconv.Itoa(sent), "--warmup", "0", "--iterations", "1", "--seed", "1")
		for qos := range 3 {
			for _, payload := range []int{10, 1024, 8192} {
				want[fmt.Sprintf("v%s qos=%d payload=%d", version, qos, payload)] = 2 * sent
			}
		}
	}
	file = stop()
	if bad := dissect(t, file, port, "-Y", faulty); len(bad) > 0 {
		t.Errorf("%d frames are malformed or worth a warning:\n%s", len(bad), strings.Join(bad[:min(len(bad), 20)], "\n"))
	}
	got := published(t, file, port)
	for key, n := range want {
		if got[key] != n {
			wrong += fmt.Sprintf("%s: %d PUBLISH packets on the wire, want %d\n", key, got[key], n)
		}
	}
	if len(got) != len(want) {
		wrong += fmt.Sprintf("other messages on the wire: %v\n", got)
	}
	return file, wrong
}

// TestDissectSees: the filter of TestDissect finds a PUBLISH that ends within its
// topic.
func TestDissectSees(t *testing.T) {
	text2pcap, err := exec.LookPath("text2pcap")
	if err != nil {
		lacking(t, "text2pcap is not installed; it comes with tshark")
	}
	dir := t.TempDir()
	hex, pcap := filepath.Join(dir, "bad.txt"), filepath.Join(dir, "bad.pcap")
	if err := os.WriteFile(hex, []byte("0000 30 05 00 ff 61 62 63\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, "", text2pcap, "-q", "-T", "40000,1883", hex, pcap)
	if len(dissect(t, pcap, "1883", "-Y", faulty)) != 1 {
		t.Error("tshark finds nothing wrong with a packet that is cut off")
	}
}
