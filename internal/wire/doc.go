// Package wire moves the bytes of one MQTT connection. The client and the
// embedded broker both use it.
//
// A [Conn] has a reading and a writing side. One goroutine reads: Fill makes one
// read into a pooled buffer, and Next returns the control packets in it without
// copying them. An idle connection holds no buffer. Any goroutine writes: it
// appends packets to the out buffer between Begin and End, then calls Flush.
//
//	out := c.Begin()
//	if c.Room(out) > 0 {
//		out = message.Append(out, id)
//	}
//	c.End(out)
//	err := c.Flush()
//
// Flush never blocks. If the socket is full, a goroutine takes over the rest, so
// that a reader which answers packets is never stuck behind a write. The other
// main type is [IDs], the table of packet identifiers in use.
//
// The package knows how packets are framed, not what they mean: it sends no
// acknowledgement, keeps no session and closes only when told to or after an error.
// It does not limit what is appended either; publishers must ask Room.
package wire
