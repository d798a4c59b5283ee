// Aedes serves the broker of that name on a free loopback port, prints its
// address, and ends with its standard input.
'use strict'
const { Aedes } = require('aedes')
const net = require('net')

async function main () {
  const broker = await Aedes.createBroker()
  const server = net.createServer(broker.handle)
  server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`))
  process.stdin.on('end', () => process.exit(0)).resume()
}

main()
