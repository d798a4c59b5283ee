// Package mqtt is an MQTT 3.1, 3.1.1 and 5.0 client for load tests. One process
// drives thousands of connections with it, so a connection costs one goroutine,
// and in steady state a message costs no allocation.
//
// [Connect] makes a [Client], which is one connection. Its reader goroutine is
// the protocol engine too: it handles every packet of a read, calls the
// [Handler], and then writes all acknowledgements, and all messages that the
// handler has published, with one system call. The handler therefore sees
// messages and acknowledgements in batches, and must not block.
//
// To publish at full speed, encode the message once and append copies of it:
//
//	message, err := c.Template(&packet.Publish{QoS: 1, Topic: topic, Payload: payload})
//	...
//	sent, err := c.PublishN(message, 100, time.Now().UnixNano(), nil)
//	err = c.Flush()
//
// PublishN appends fewer copies when the in-flight window or the out buffer is
// full; Handler.Acks and Handler.Room say when to go on. For a single message,
// [Client.Publish] waits for the broker's answer instead.
//
// A [Session] keeps unacknowledged messages from one connection to the next, as
// the standard asks of a client without a clean start. A [Link] reconnects by
// itself and renews its subscriptions.
//
// Because it measures, the client does not smooth anything over. It resends only
// on a new connection, never on a timer [MQTT-4.4.0-1]. It has no queue behind the
// out buffer and drops nothing: if a message does not fit, the caller is told to try
// again later. It stores nothing on disk and does not route messages to callbacks by
// topic. If the broker breaks the protocol, the client disconnects, and the error
// says which rule was broken.
package mqtt
