// Mqttload is a load-testing tool for MQTT brokers.
package main

import (
	"context"
	"os"

	"github.com/mqttload/mqttload/cmd"
)

func main() { os.Exit(cmd.Main(context.Background(), cmd.OS())) }
