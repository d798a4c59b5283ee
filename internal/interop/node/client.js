// Client sends messages through a broker with MQTT.js, and prints each one that
// comes back as a line of JSON:
//
//   node client.js PORT VERSION QOS COUNT
'use strict'
const mqtt = require('mqtt')

async function main (port, version, qos, count) {
  const topic = `mqttjs/${version}/${qos}`
  const options = {
    protocolVersion: version,
    protocolId: version === 3 ? 'MQIsdp' : 'MQTT',
    clientId: `mqttjs-${version}-${qos}`,
    reconnectPeriod: 0
  }
  const client = await mqtt.connectAsync(`mqtt://127.0.0.1:${port}`, options)
  const granted = await client.subscribeAsync(topic + '/#', { qos })
  if (granted[0].qos !== qos) throw new Error(`granted ${JSON.stringify(granted)}`)
  let left = count
  const all = new Promise((resolve) => client.on('message', (topic, payload, packet) => {
    const { responseTopic, correlationData, userProperties } = packet.properties || {}
    console.log(JSON.stringify([topic, packet.qos, payload.toString(), responseTopic, correlationData && correlationData.toString(), userProperties]))
    if (--left === 0) resolve()
  }))
  const properties = version === 5
    ? { responseTopic: 'answer', correlationData: Buffer.from('c'), userProperties: { TraceId: ['1', '2'] } }
    : undefined
  const sent = []
  for (let i = 0; i < count; i++) sent.push(client.publishAsync(topic + '/a', String(i), { qos, properties }))
  await Promise.all(sent)
  await all
  await client.endAsync()
}

main(...process.argv.slice(2).map(Number)).catch((e) => {
  console.error(e)
  process.exit(1)
})
