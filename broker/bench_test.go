package broker

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/mqttload/mqttload/internal/cputime"
	"github.com/mqttload/mqttload/mqtt/packet"
)

// flow is a client with minimal overhead: one goroutine that publishes to a topic and
// receives its messages, a batch per system call, with up to window messages in
// flight. It handles only the packets that can occur.
type flow struct {
	nc     net.Conn
	qos    byte
	packet []byte // one PUBLISH, its identifier at idAt
	idAt   int
	in     []byte
	have   int
	out    []byte
	id     uint16

	sent, received, finished int
}

func newFlow(t testing.TB, addr string, v packet.Version, qos byte, payload int) *flow {
	c := connect(t, addr, clean(v, "flow"))
	c.subscribe(sub("flow/topic", qos))
	_ = c.nc.SetDeadline(time.Time{})
	p := packet.Publish{Topic: []byte("flow/topic"), Payload: make([]byte, payload), QoS: qos}
	if qos > 0 {
		p.PacketID = 1
	}
	buf, err := p.Append(nil, v)
	if err != nil {
		t.Fatal(err)
	}
	f := &flow{nc: c.nc, qos: qos, packet: buf, in: make([]byte, 256<<10), out: make([]byte, 0, 256<<10)}
	f.idAt = len(buf) - payload - 2
	if v == packet.V5 {
		f.idAt--
	}
	return f
}

// run carries n messages from the first byte sent to the last one received.
func (f *flow) run(t testing.TB, n, window int) {
	f.sent, f.received, f.finished = 0, 0, 0
	for f.received < n || f.qos > 0 && f.finished < n {
		done := f.received
		if f.qos > 0 {
			done = min(done, f.finished)
		}
		for f.sent < n && f.sent-done < window && len(f.out) < 128<<10 {
			f.publish()
		}
		if len(f.out) > 0 {
			if _, err := f.nc.Write(f.out); err != nil {
				t.Fatal(err)
			}
			f.out = f.out[:0]
		}
		f.read(t)
	}
	if len(f.out) > 0 {
		if _, err := f.nc.Write(f.out); err != nil {
			t.Fatal(err)
		}
		f.out = f.out[:0]
	}
}

func (f *flow) publish() {
	at := len(f.out)
	f.out = append(f.out, f.packet...)
	if f.qos > 0 {
		if f.id++; f.id == 0 {
			f.id = 1
		}
		binary.BigEndian.PutUint16(f.out[at+f.idAt:], f.id)
	}
	f.sent++
}

func (f *flow) read(t testing.TB) {
	n, err := f.nc.Read(f.in[f.have:])
	if err != nil {
		t.Fatal(err)
	}
	f.have += n
	at := 0
	for f.have-at >= 2 {
		size, length, ok := remainingLength(f.in[at+1 : f.have])
		if !ok || f.have-at < 1+size+length {
			break
		}
		f.handle(f.in[at], f.in[at+1+size:at+1+size+length])
		at += 1 + size + length
	}
	f.have = copy(f.in, f.in[at:f.have])
}

func remainingLength(b []byte) (size, n int, ok bool) {
	for i := 0; i < len(b) && i < 4; i++ {
		n |= int(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return i + 1, n, true
		}
	}
	return 0, 0, false
}

func (f *flow) handle(first byte, body []byte) {
	switch packet.Type(first >> 4) {
	case packet.PUBLISH:
		topic := int(binary.BigEndian.Uint16(body))
		switch first >> 1 & 3 {
		case 0:
			f.received++
		case 1:
			f.received++
			f.out = packet.AppendAck(f.out, packet.PUBACK, binary.BigEndian.Uint16(body[2+topic:]))
		case 2:
			f.out = packet.AppendAck(f.out, packet.PUBREC, binary.BigEndian.Uint16(body[2+topic:]))
		}
	case packet.PUBACK, packet.PUBCOMP:
		f.finished++
	case packet.PUBREC:
		f.out = packet.AppendAck(f.out, packet.PUBREL, binary.BigEndian.Uint16(body))
	case packet.PUBREL:
		f.received++
		f.out = packet.AppendAck(f.out, packet.PUBCOMP, binary.BigEndian.Uint16(body))
	}
}

// BenchmarkRoute carries messages from a client to itself over loopback TCP,
// 1,000 in flight. cpu-ns/msg is the CPU time of both ends.
func BenchmarkRoute(b *testing.B) {
	for _, v := range []packet.Version{packet.V311, packet.V5} {
		for qos := range byte(3) {
			for _, payload := range []int{10, 1024, 8192} {
				b.Run(fmt.Sprintf("protocol=%s/qos=%d/payload=%d", v, qos, payload), func(b *testing.B) {
					f := newFlow(b, listen(b, startBroker(b, Config{})), v, qos, payload)
					f.run(b, 2000, 1000)
					b.ReportAllocs()
					b.ResetTimer()
					cpu := cputime.Total()
					f.run(b, b.N, 1000)
					b.ReportMetric(float64(cputime.Total()-cpu)/float64(b.N), "cpu-ns/msg")
				})
			}
		}
	}
}

// BenchmarkEcho is the reference for BenchmarkRoute: the same bytes through a peer
// that only copies them, in chunks of 64 KiB.
func BenchmarkEcho(b *testing.B) {
	for _, size := range []int{24, 1038, 8206} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) { echo(b, size) })
	}
}

func echo(b *testing.B, size int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = nc.Close() }()
		// Hidden behind plain interfaces, so that it is not done by splice.
		_, _ = io.CopyBuffer(struct{ io.Writer }{nc}, struct{ io.Reader }{nc}, make([]byte, 64<<10))
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	chunk, in := make([]byte, 64<<10), make([]byte, 256<<10)
	b.ResetTimer()
	cpu := cputime.Total()
	total := b.N * size
	for sent, got := 0, 0; got < total; {
		// More than the socket buffers hold would block both sides in Write.
		for sent < total && sent-got < min(1000*size, 256<<10) {
			n, err := nc.Write(chunk[:min(len(chunk), total-sent)])
			if err != nil {
				b.Fatal(err)
			}
			sent += n
		}
		n, err := nc.Read(in)
		if err != nil {
			b.Fatal(err)
		}
		got += n
	}
	b.ReportMetric(float64(cputime.Total()-cpu)/float64(b.N), "cpu-ns/msg")
}
