package mqtt

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mqttload/mqttload/internal/mqtttest"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// witness is the handler of a client whose server sends arbitrary bytes. It publishes
// whenever it may, and checks the order of its calls.
type witness struct {
	t      *testing.T
	tool   atomic.Pointer[tool]
	sent   atomic.Int64
	batch  bool
	done   int
	closed int
}

type tool struct {
	c    *Client
	tmpl *packet.Template
}

func (w *witness) BatchStart() { w.enter(!w.batch); w.batch = true }
func (w *witness) Message(p *packet.Publish) {
	w.enter(w.batch)
	// [MQTT-3.3.2-1, MQTT-3.3.2-2]
	if len(p.Topic) == 0 || strings.ContainsAny(string(p.Topic), "+#\x00") {
		w.t.Errorf("delivered to topic %q", p.Topic)
	}
}

func (w *witness) Acks(acks []Ack) {
	w.enter(w.batch)
	for _, a := range acks {
		if a.Done {
			w.done++
		}
	}
}
func (w *witness) BatchEnd() { w.enter(w.batch); w.batch = false; w.publish(1) }
func (w *witness) Room()     {}
func (w *witness) Closed(error) {
	w.enter(!w.batch)
	w.closed++
}

func (w *witness) enter(ok bool) {
	if !ok || w.closed > 0 {
		w.t.Errorf("a call out of order: in a batch %v, closed %v", w.batch, w.closed)
	}
}

func (w *witness) publish(n int) {
	if p := w.tool.Load(); p != nil {
		n, _ = p.c.PublishN(p.tmpl, n, 0, nil)
		w.sent.Add(int64(n))
	}
}

// parrot is an Authenticator that answers with the data it gets.
type parrot struct{}

func (parrot) Method() string                       { return "parrot" }
func (parrot) Start() ([]byte, error)               { return []byte("hello"), nil }
func (parrot) Continue(data []byte) ([]byte, error) { return data, nil }
func (parrot) Finish([]byte) error                  { return nil }

// pieces splits data into pieces of the sizes in cuts, in turn.
func pieces(data, cuts []byte) (list [][]byte) {
	for i := 0; len(data) > 0; i++ {
		n := len(data)
		if len(cuts) > 0 {
			n = min(n, int(cuts[i%len(cuts)])+1)
		}
		list = append(list, data[:n])
		data = data[n:]
	}
	return list
}

// says serves one connection: once go is closed it sends parts, then closes.
func says(nc net.Conn, first []byte, start <-chan struct{}, parts [][]byte) {
	go func() { _, _ = io.Copy(io.Discard, nc) }()
	go func() {
		defer nc.Close()
		if _, err := nc.Write(first); err != nil {
			return
		}
		<-start
		for _, p := range parts {
			if _, err := nc.Write(p); err != nil {
				return
			}
		}
	}()
}

// carried returns a session with messages in flight at each step: the
// identifiers 1 and 2 at QoS 1, 3 and 4 at QoS 2, with a PUBREC for 3.
func carried(t *testing.T, v packet.Version) *Session {
	s := NewSession()
	near, far := net.Pipe()
	start := make(chan struct{})
	first, err := new(packet.Connack).Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	says(far, first, start, [][]byte{packet.AppendAck(nil, packet.PUBREC, 3)})
	cfg := Config{Version: v, ClientID: "c", Session: s, Dial: func(context.Context) (net.Conn, error) { return near, nil }}
	if v == packet.V5 {
		cfg.Properties.SessionExpiry = new(uint32(60))
	}
	c, err := Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, c, 1, 2, 0)
	publish(t, c, 2, 2, 0)
	close(start)
	<-c.Done()
	return s
}

// Bits of the mode of an input, besides the version.
const (
	fuzzConnack = 1 << iota // the bytes follow a CONNACK
	fuzzResumed             // the session has messages in flight
	fuzzAuth                // the client authenticates by AUTH
	fuzzModes
)

var fuzzVersions = [...]packet.Version{packet.V31, packet.V311, packet.V5}

// hears sends data to a client that publishes, subscribes and waits.
func hears(t *testing.T, v packet.Version, mode int, cuts, data []byte) {
	var connack packet.Connack
	w := &witness{t: t}
	near, far := net.Pipe()
	cfg := Config{
		Version: v, ClientID: "c", Inflight: 20, Handler: w, Session: NewSession(),
		Dial: func(context.Context) (net.Conn, error) { return near, nil },
	}
	if v == packet.V5 {
		cfg.Properties = packet.Properties{SessionExpiry: new(uint32(60)), TopicAliasMaximum: new(uint16(3)), ReceiveMaximum: new(uint16(3))}
		if mode&fuzzAuth != 0 {
			cfg.Auth, connack.Properties.AuthMethod = parrot{}, new("parrot")
		}
	}
	if mode&fuzzResumed != 0 {
		cfg.Session = carried(t, v)
		w.sent.Store(int64(cfg.Session.InFlight()))
		connack.SessionPresent = v != packet.V31
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := make(chan struct{})
	var first []byte
	if mode&fuzzConnack != 0 {
		first, _ = connack.Append(nil, v)
	} else {
		close(start)
	}
	says(far, first, start, pieces(data, cuts))
	c, err := Connect(t.Context(), cfg)
	if err == nil {
		w.work(c)
	} else if mode&fuzzConnack != 0 {
		t.Fatal(err)
	}
	if mode&fuzzConnack != 0 {
		close(start)
	}
	if err == nil {
		<-c.Done()
	}
	synctest.Wait()
	runtime.ReadMemStats(&after)
	if n := int(after.TotalAlloc - before.TotalAlloc); n > fuzzAlloc+2*len(data) {
		t.Errorf("%d B allocated for %d B of input", n, len(data))
	}
	if err == nil {
		w.account(c, cfg.Session, mode&fuzzConnack != 0)
	}
}

// fuzzAlloc is the memory in bytes that a connection and the batches of a read need
// for any input.
const fuzzAlloc = 2 << 20

// work puts messages in flight, and starts a goroutine that waits for each kind of
// answer.
func (w *witness) work(c *Client) {
	if tmpl, err := c.Template(&packet.Publish{QoS: 1, PacketID: 1, Topic: []byte("a"), Payload: []byte("hi")}); err == nil {
		w.tool.Store(&tool{c, tmpl})
	}
	w.publish(3)
	ctx := context.Background()
	go func() { _, _ = c.Publish(ctx, &packet.Publish{QoS: 2, PacketID: 1, Topic: []byte("a")}) }()
	synctest.Wait() // makes the identifiers the same each time
	go func() { _, _ = c.Subscribe(ctx, []packet.Subscription{{Filter: "a", QoS: 2}}, packet.Properties{}) }()
	synctest.Wait()
	go func() { _, _ = c.Unsubscribe(ctx, []string{"a"}) }()
	go func() { _ = c.Reauthenticate(ctx) }()
	synctest.Wait()
}

// account compares the messages that were acknowledged, dropped or are still in flight
// with those that were sent. Whether the message of Publish was sent is known only if
// the server has waited for it.
func (w *witness) account(c *Client, s *Session, gone bool) {
	least, most := int(w.sent.Load()), int(w.sent.Load())+1
	if gone {
		least = most
	}
	dropped, left := len(c.Resumed().Dropped), s.InFlight()
	if n := w.done + dropped + left; n < least || n > most || w.closed != 1 || c.Err() == nil {
		w.t.Errorf("sent %d to %d; %d acknowledged, %d dropped, %d in flight; closed %d times: %v", least, most, w.done, dropped, left, w.closed, c.Err())
	}
}

// FuzzClient sends arbitrary bytes, split at arbitrary points, to a client of any
// version, after its CONNECT or after CONNACK, with messages in flight of this
// connection and of an earlier one. The client must not panic, hang, leak a goroutine
// or lose track of a message, and must allocate in proportion to the bytes received.
func FuzzClient(f *testing.F) {
	add := func(v packet.Version, data []byte) {
		version := slices.Index(fuzzVersions[:], v)
		for _, mode := range []int{0, fuzzConnack, fuzzConnack | fuzzResumed} {
			f.Add(byte(mode*len(fuzzVersions)+version), []byte{}, data)
		}
	}
	for _, s := range []string{
		"20 03 01 00 00", "40 02 0001 50 02 0002 70 02 0003", "50 02 0004 50 03 0004 92 70 02 0004", "50 03 0004 97 50 03 0003 97", "62 02 0007 34 06 0001 61 0001 00 62 02 0001",
		"90 04 0005 00 02 b0 04 0006 00 00", "30 06 0001 61 03 230001 30 05 0000 03 230001", "e0 02 8e 00", "30 ff ff ff 7f 00", "d0 00 32 05 0001 61 0001",
		"20 06 00 00 03 13 0001", "f0 05 18 03 15 0000 20 0c 00 00 09 15 0006 706172726f74", "34 07 0001 61 0001 00 34 07 0001 61 0002 00 34 07 0001 61 0003 00 34 07 0001 61 0004 00",
	} {
		for _, v := range fuzzVersions {
			add(v, mqtttest.Hex(f, s))
		}
		f.Add(byte(2+len(fuzzVersions)*(fuzzConnack|fuzzAuth)), []byte{0}, mqtttest.Hex(f, s))
	}
	for _, p := range goldenPackets(f) {
		add(p.v, p.raw)
	}
	// A packet that claims 256 MiB, with more bytes than one read returns.
	add(packet.V311, append(mqtttest.Hex(f, "30 ff ff ff 7f 0001 61"), make([]byte, 100_000)...))
	if _, err := os.Stat(vectorFile); err == nil {
		for _, v := range readVectors(f) {
			for _, m := range v.Msgs {
				if m[0] == "send" {
					add(packet.Version(v.Ver), mqtttest.Hex(f, m[1].(string)))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, mode byte, cuts, data []byte) {
		v, flags := fuzzVersions[int(mode)%len(fuzzVersions)], int(mode)/len(fuzzVersions)%fuzzModes
		synctest.Test(t, func(t *testing.T) { hears(t, v, flags, cuts, data) })
	})
}

type goldenPacket struct {
	v   packet.Version
	raw []byte
}

// goldenPackets returns the golden packets of package packet, valid and malformed.
func goldenPackets(f *testing.F) (list []goldenPacket) {
	files, err := filepath.Glob("packet/testdata/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no golden packets: %v", err)
	}
	versions := map[string]packet.Version{"v=3.1": packet.V31, "v=3.1.1": packet.V311, "v=5": packet.V5}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var g goldenPacket
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			line = strings.TrimSpace(line)
			words := strings.Fields(line)
			switch {
			case line == "", line[0] == '~':
			case len(words) == 3 && versions[words[2]] != 0:
				g = goldenPacket{v: versions[words[2]]}
			case strings.ContainsRune("=!", rune(line[0])):
				list = append(list, g)
			default:
				raw, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
				if err != nil {
					f.Fatalf("%s: %q: %v", name, line, err)
				}
				g.raw = append(g.raw, raw...)
			}
		}
	}
	return list
}
