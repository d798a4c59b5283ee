// Oracle compares mqtt-packet with the codec under test, one JSON object per line.
//
//   node oracle.js parse               {"v":5,"raw":"hex"} from standard input:
//                                      {"packet":{...},"raw":"written again"}, or
//                                      {"refused":"why"}, {"packet":{...},"unwritable":"why"}
//   node oracle.js generate COUNT SEED random packets: {"v":5,"packet":{...},"raw":"hex"}
//
// A packet is an object with the field names of mqtt-packet; binary data is in
// hexadecimal, and User Properties are a list of pairs.
'use strict'
const mqtt = require('mqtt-packet')

const fields = ['cmd', 'protocolId', 'protocolVersion', 'clean', 'keepalive', 'clientId', 'username', 'password', 'will',
  'sessionPresent', 'returnCode', 'reasonCode', 'messageId', 'subscriptions', 'unsubscriptions', 'granted', 'properties']

const plain = value => Buffer.isBuffer(value) ? value.toString('hex') : value

function describe (packet) {
  const told = {}
  const publish = packet.cmd === 'publish' ? ['qos', 'dup', 'retain', 'topic', 'payload'] : []
  for (const field of [...fields, ...publish]) {
    const value = packet[field]
    if (value === undefined || value === null) continue
    if (field === 'properties') told.properties = describeProperties(value)
    else if (field === 'will') told.will = describeWill(value)
    else told[field] = plain(value)
  }
  return told
}

function describeWill (will) {
  const told = { ...will, payload: plain(will.payload) }
  if (will.properties) told.properties = describeProperties(will.properties)
  return told
}

function describeProperties (properties) {
  const told = {}
  for (const name of Object.keys(properties)) {
    told[name] = name === 'userProperties' ? pairs(properties[name]) : plain(properties[name])
  }
  return told
}

const pairs = user => Object.keys(user).flatMap(name => [].concat(user[name]).map(value => [name, value]))

function parse (line) {
  const { v, raw } = JSON.parse(line)
  const options = { protocolVersion: v }
  const bytes = Buffer.from(raw, 'hex')
  const parser = mqtt.parser(options)
  let packet, refused
  parser.on('packet', p => { packet = packet || p })
  parser.on('error', e => { refused = refused || e.message })
  try {
    parser.parse(bytes)
  } catch (e) {
    refused = e.message
  }
  if (refused || !packet) return { refused: refused || 'incomplete' }
  try {
    return { packet: describe(packet), raw: mqtt.generate(packet, options).toString('hex') }
  } catch (e) {
    return { packet: describe(packet), unwritable: e.message }
  }
}

// random is mulberry32: the same seed makes the same packets everywhere.
let state = 0
function random () {
  state = (state + 0x6D2B79F5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296
}

const below = n => Math.floor(random() * n)
const chance = p => random() < p
const pick = list => list[below(list.length)]
const some = (n, make) => Array.from({ length: 1 + below(n) }, make)
const id = () => 1 + below(65535)
const letters = [...'abcXYZ0189 -_.$äßжλ漢字😀\uFEFF']
const text = n => Array.from({ length: below(n) }, () => pick(letters)).join('')
const bytes = n => Buffer.from(Array.from({ length: below(chance(0.02) ? 20000 : n) }, () => below(256)))
const topic = () => some(4, () => 't' + text(6)).join('/')
const filter = () => pick([topic(), '#', '+', '+/' + topic(), topic() + '/#', topic() + '/+', '$share/g/' + topic()])

// In the order of the identifiers, which is that of the codec under test.
const properties = [
  ['payloadFormatIndicator', 'publish will', () => chance(0.5)],
  ['messageExpiryInterval', 'publish will', () => below(2 ** 32)],
  ['contentType', 'publish will', () => text(20)],
  ['responseTopic', 'publish will', topic],
  ['correlationData', 'publish will', () => bytes(20)],
  ['subscriptionIdentifier', 'publish subscribe', () => 1 + below(pick([100, 20000, 3e6, 268435455]))],
  ['sessionExpiryInterval', 'connect connack disconnect', () => below(2 ** 32)],
  ['assignedClientIdentifier', 'connack', () => text(20)],
  ['serverKeepAlive', 'connack', () => below(65536)],
  ['authenticationMethod', 'connect connack auth', () => text(20)],
  ['authenticationData', 'connect connack auth', () => bytes(20)],
  ['requestProblemInformation', 'connect', () => chance(0.5)],
  ['willDelayInterval', 'will', () => below(2 ** 32)],
  ['requestResponseInformation', 'connect', () => chance(0.5)],
  ['responseInformation', 'connack', () => text(20)],
  ['serverReference', 'connack disconnect', () => text(20)],
  ['reasonString', 'connack puback pubrec pubrel pubcomp suback unsuback disconnect auth', () => text(20)],
  ['receiveMaximum', 'connect connack', id],
  ['topicAliasMaximum', 'connect connack', () => below(65536)],
  ['topicAlias', 'publish', id],
  ['maximumQoS', 'connack', () => below(2)],
  ['retainAvailable', 'connack', () => chance(0.5)],
  ['userProperties', 'connect connack publish will puback pubrec pubrel pubcomp subscribe suback unsubscribe unsuback disconnect auth', user],
  ['maximumPacketSize', 'connect connack', () => 1 + below(2 ** 32 - 1)],
  ['wildcardSubscriptionAvailable', 'connack', () => chance(0.5)],
  ['subscriptionIdentifiersAvailable', 'connack', () => chance(0.5)],
  ['sharedSubscriptionAvailable', 'connack', () => chance(0.5)]
]

function user () {
  const all = Object.create(null)
  // mqtt-packet keeps them as an object: names that are numbers would be moved.
  some(3, () => { all['n' + text(5)] = chance(0.3) ? [text(5), text(5)] : text(5) })
  return all
}

function props (where) {
  const all = {}
  for (const [name, list, make] of properties) {
    const needed = name === 'authenticationMethod' && (where === 'auth' || where === 'connect')
    if (list.split(' ').includes(where) && (needed || chance(0.3))) all[name] = make()
  }
  return all
}

const codes = {
  connack: [0, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99, 0x9A, 0x9B, 0x9C, 0x9D, 0x9F],
  puback: [0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  pubrec: [0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99],
  pubrel: [0, 0x92],
  pubcomp: [0, 0x92],
  suback: [0, 1, 2, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2],
  unsuback: [0, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91],
  disconnect: [0, 4, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9A, 0x9B,
    0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2],
  auth: [0, 0x18, 0x19]
}

const makers = {
  connect (p, v) {
    p.protocolId = v === 3 ? 'MQIsdp' : 'MQTT'
    p.protocolVersion = v
    p.clean = chance(0.5)
    p.keepalive = below(65536)
    p.clientId = v === 3 || !p.clean ? 'c' + text(20) : text(20)
    if (chance(0.5)) p.username = text(20)
    if (p.username !== undefined && chance(0.5)) p.password = bytes(20)
    if (chance(0.5)) {
      p.will = { retain: chance(0.5), qos: below(3), topic: topic(), payload: bytes(50) }
      if (v === 5) withProperties(p.will, 'will')
    }
  },
  connack (p, v) {
    if (v === 5) p.reasonCode = pick(codes.connack)
    else p.returnCode = below(6)
    p.sessionPresent = !(p.reasonCode || p.returnCode) && chance(0.5) && v !== 3 // a byte that 3.1 does not use
  },
  publish (p) {
    p.qos = below(3)
    p.dup = p.qos > 0 && chance(0.3)
    p.retain = chance(0.3)
    p.topic = topic()
    if (p.qos > 0) p.messageId = id()
    p.payload = bytes(300)
  },
  subscribe (p, v) {
    p.messageId = id()
    p.subscriptions = some(4, () => {
      const s = { topic: filter(), qos: below(3) }
      return v === 5 ? { ...s, nl: chance(0.5) && !s.topic.startsWith('$share'), rap: chance(0.5), rh: below(3) } : s
    })
  },
  suback (p, v) {
    p.messageId = id()
    p.granted = some(4, () => pick(v === 5 ? codes.suback : [0, 1, 2, 0x80]))
  },
  unsubscribe (p) {
    p.messageId = id()
    p.unsubscriptions = some(4, filter)
  },
  unsuback (p, v) {
    p.messageId = id()
    if (v === 5) p.granted = some(4, () => pick(codes.unsuback))
  },
  puback: ack,
  pubrec: ack,
  pubrel: ack,
  pubcomp: ack,
  pingreq () {},
  pingresp () {},
  disconnect: outcome,
  auth: outcome
}

function ack (p, v) {
  p.messageId = id()
  outcome(p, v)
}

function outcome (p, v) {
  if (v === 5) p.reasonCode = pick(codes[p.cmd])
}

function withProperties (p, where) {
  const all = props(where)
  if (Object.keys(all).length > 0) p.properties = all
}

function generate () {
  const v = pick([3, 4, 5, 5, 5])
  const packet = { cmd: pick(Object.keys(makers).filter(cmd => v === 5 || cmd !== 'auth')) }
  makers[packet.cmd](packet, v)
  if (v === 5 && !packet.cmd.startsWith('ping')) withProperties(packet, packet.cmd)
  return { v, packet: describe(packet), raw: mqtt.generate(packet, { protocolVersion: v }).toString('hex') }
}

function main (mode, count, seed) {
  const say = answer => process.stdout.write(JSON.stringify(answer) + '\n')
  if (mode === 'generate') {
    state = Number(seed)
    for (let i = 0; i < Number(count); i++) say(generate())
    return
  }
  require('readline').createInterface({ input: process.stdin }).on('line', line => say(parse(line)))
}

main(...process.argv.slice(2))
