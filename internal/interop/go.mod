module github.com/mqttload/mqttload/internal/interop

go 1.26.0

require (
	github.com/mochi-mqtt/server/v2 v2.7.9
	github.com/mqttload/mqttload v0.0.0
)

require (
	github.com/gorilla/websocket v1.5.0 // indirect
	github.com/rs/xid v1.4.0 // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/mqttload/mqttload => ../..
