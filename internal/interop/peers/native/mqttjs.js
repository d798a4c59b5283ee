// The counterpart of child.go for mqtt.js: see runChild there for the protocol on
// its standard input and output.
'use strict'
const fs = require('fs')
const readline = require('readline')
const mqtt = require('mqtt')

const conf = Object.fromEntries(process.argv.slice(2).map((a) => {
  const at = a.indexOf('=')
  return [a.slice(0, at), a.slice(at + 1)]
}))
const [qos, payload, window] = [conf.qos, conf.payload, conf.window].map(Number)
const topic = 'peers/t'
const burstSize = 1000
const message = Buffer.alloc(payload)

let received = 0
let target = -1
let reached
let gate = null // called when a message has come back
let burstCPU = 0
let publisher, subscriber
const idle = []

function connect (id) {
  const [host, port] = conf.addr.split(':')
  return mqtt.connectAsync({
    host, port: Number(port), protocol: conf.ca ? 'mqtts' : 'mqtt', ca: conf.ca ? fs.readFileSync(conf.ca) : undefined,
    clientId: id, clean: true, keepalive: 300, reconnectPeriod: 0, protocolVersion: 4, queueQoSZero: false
  }).then((client) => {
    client.on('message', (_, body) => {
      if (body.length !== payload) return
      received++
      if (gate) gate()
      if (received === target) reached()
    })
    return client
  })
}

function expect (n) {
  target = received + n
  return new Promise((resolve) => { reached = resolve })
}

// publish sends n messages, at most window of which have not been called back
// for: written at QoS 0, acknowledged above; or, gated, not come back.
function publish (client, n, gated) {
  return new Promise((resolve, reject) => {
    let sent = 0
    let done = 0
    let open = 0
    const more = () => {
      while (sent < n && open < window) {
        sent++
        open++
        client.publish(topic, message, { qos }, ended)
      }
    }
    const ended = (err) => {
      if (err) return reject(err)
      done++
      if (!gated) open--
      if (done === n) return resolve()
      more()
    }
    gate = gated ? () => { open--; more() } : null
    more()
  })
}

function cpu () {
  const u = process.resourceUsage()
  return (u.userCPUTime + u.systemCPUTime) * 1000
}

async function burst () {
  const client = await connect('burst')
  await client.subscribeAsync(topic, { qos })
  const began = cpu()
  const all = expect(burstSize)
  await publish(client, burstSize, false)
  await all
  burstCPU += cpu() - began
  await client.endAsync()
}

const works = {
  publish: (n) => publish(publisher, n, false),
  receive: async (n) => {
    const all = expect(n)
    await subscriber.subscribeAsync(`flood/${payload}/${n}`, { qos })
    await all
  },
  pair: async (n) => {
    const all = expect(n)
    await publish(publisher, n, qos === 0)
    await all
  },
  burst: async (n) => { for (let i = 0; i < n; i++) await burst() },
  connect: async (n) => { for (let i = 0; i < n; i++) idle.push(await connect('c' + idle.length)) }
}

function field (file, name) {
  const line = fs.readFileSync(file, 'utf8').split('\n').find((l) => l.startsWith(name))
  return line ? parseInt(line.slice(name.length)) : 0
}

function usage () {
  let rss = 0
  if (conf.work === 'connect') {
    global.gc()
    rss = field('/proc/self/status', 'VmRSS:') * 1024
  }
  const used = conf.work === 'burst' ? burstCPU : cpu()
  return ['usage', used, field('/proc/self/io', 'syscw:'), field('/proc/self/io', 'syscr:'), rss, received].join(' ')
}

async function main () {
  if (conf.work === 'publish' || conf.work === 'pair') publisher = await connect('pub')
  if (conf.work === 'receive' || conf.work === 'pair') subscriber = await connect('sub')
  if (conf.work === 'pair') await subscriber.subscribeAsync(topic, { qos })
  console.log('ready ' + require('mqtt/package.json').version)
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, n] = line.split(' ')
    if (command === 'run') {
      await works[conf.work](Number(n))
      console.log('done')
    } else {
      console.log(usage())
    }
  }
  process.exit(0)
}

main().catch((err) => {
  console.log('error: ' + err.message)
  process.exit(1)
})
