package result

import (
	"fmt"
	"slices"
)

// Kind says what a case counts as one request.
type Kind string

// Kinds of cases. The zero Kind counts as KindMessages.
const (
	KindMessages    Kind = "messages"    // messages published, and delivered if there are subscribers
	KindReceived    Kind = "received"    // messages of other publishers, received
	KindConnections Kind = "connections" // connections made and held
	KindCycles      Kind = "cycles"      // clients that connect, subscribe and disconnect
)

// Sends names what the case counts as sent, in the plural, and its rate.
func (c *Case) Sends() (noun, rate string) {
	if c.Kind == KindCycles {
		return "connects", "connects/s"
	}
	return "messages", "msg/s"
}

// BreachKind is a way to break the delivery contract.
type BreachKind string

// Kinds of breaches.
const (
	BreachAccount    BreachKind = "account"    // the delivery account does not balance: a fault of the tool
	BreachLost       BreachKind = "lost"       // messages lost at QoS 1 or 2
	BreachDuplicated BreachKind = "duplicated" // messages delivered again at QoS 2
)

// Breach is one way in which a case broke the delivery contract. Count of Of
// deliveries broke it at QoS; all three are 0 for BreachAccount.
type Breach struct {
	Kind      BreachKind
	QoS       byte
	Count, Of int64
	account   error
}

// String is b as a clause: "3 of 600 messages were lost at QoS 1 (0.50 %)".
func (b Breach) String() string {
	switch b.Kind {
	case BreachLost:
		return fmt.Sprintf("%s of %s messages were lost at QoS %d (%s)", FormatInt(b.Count), FormatInt(b.Of), b.QoS, Percent(b.Count, b.Of))
	case BreachDuplicated:
		return fmt.Sprintf("%s messages were delivered more than once at QoS %d", FormatInt(b.Count), b.QoS)
	}
	return b.account.Error()
}

// Broken lists the ways in which c broke the delivery contract: an account that
// does not balance, loss at QoS 1 and 2, duplicates at QoS 2. [MQTT-4.3.2-1]
// [MQTT-4.3.3-1] This is the only place that decides it.
func (c *Case) Broken() (breaches []Breach) {
	d := &c.Delivery
	if err := d.Check(); err != nil {
		breaches = append(breaches, Breach{Kind: BreachAccount, account: err})
	}
	qos := c.Owed()
	if qos >= 1 && d.Lost > 0 {
		breaches = append(breaches, Breach{Kind: BreachLost, QoS: qos, Count: d.Lost, Of: d.Expected})
	}
	if qos == 2 && d.Duplicated > 0 {
		breaches = append(breaches, Breach{Kind: BreachDuplicated, QoS: qos, Count: d.Duplicated, Of: d.Received})
	}
	return breaches
}

// Owed is the QoS that the broker owed to every delivery of c, 0 if it owed
// nothing. A broker that granted a lower QoS has promised less. Where clients
// reconnected without a kept session, it did not owe what was published in between.
func (c *Case) Owed() byte {
	if c.QoS == nil || c.Warned(CodeGrantedQoS) || c.Clients.Reconnects > 0 && !c.PersistentSessions {
		return 0
	}
	return *c.QoS
}

// Warned reports whether c has a warning of that code.
func (c *Case) Warned(code string) bool {
	return slices.ContainsFunc(c.Warnings, func(w Warning) bool { return w.Code == code })
}
