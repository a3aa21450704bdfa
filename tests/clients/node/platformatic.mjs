// The driver of @platformatic/kafka.

import { readFileSync } from 'node:fs'
import { Admin, Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'
import { login, serve, tls, until, WITHIN_MS } from './commands.mjs'

const described = new URL('./node_modules/@platformatic/kafka/package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(described))

class Platformatic {
  constructor (address) {
    this.common = {
      bootstrapBrokers: [address], clientId: 'platformatic', timeout: WITHIN_MS, tls: tls(), sasl: login()
    }
    this.admin = new Admin(this.common)
    this.groups = 0
  }

  version () {
    return { version }
  }

  async create ({ topic, partitions }) {
    await this.admin.createTopics({ topics: [topic], partitions, replicas: 1 })
  }

  async describe ({ topic }) {
    const { topics } = await this.admin.metadata({ topics: [topic], forceUpdate: true })
    return { partitions: Object.keys(topics.get(topic).partitions).map(Number).sort() }
  }

  async topics () {
    return { topics: await this.admin.listTopics() }
  }

  async produce ({ topic, codec, acks, idempotent, records }) {
    const producer = new Producer({ ...this.common, serializers: stringSerializers })
    try {
      const messages = records.map(({ partition, timestamp, key, value, headers }) => ({
        topic, partition, key, value, headers,
        ...(timestamp === null ? {} : { timestamp: BigInt(timestamp) })
      }))
      await producer.send({ messages, acks, idempotent, compression: codec })
    } finally {
      await producer.close()
    }
  }

  // @platformatic/kafka has no consumer without a group, so this driver makes a new group that
  // begins at the offset.
  async consume ({ topic, partition, offset, count }) {
    const found = []
    const consumer = this.#consumer(`${topic}-reader-${++this.groups}`)
    try {
      const stream = await consumer.consume({
        topics: [topic],
        mode: 'manual',
        offsets: [{ topic, partition, offset: BigInt(offset) }],
        autocommit: false
      })
      stream.on('data', message => found.push(record(message)))
      await until(() => found.length >= count)
    } finally {
      await consumer.close(true)
    }
    return { records: found }
  }

  async offsets ({ topic, partition }) {
    const first = await this.#offset(topic, partition, -2n)
    return { first, end: await this.#offset(topic, partition, -1n) }
  }

  async offset_at ({ topic, partition, timestamp }) {
    return { offset: await this.#offset(topic, partition, BigInt(timestamp)) }
  }

  async #offset (topic, partition, timestamp) {
    const partitions = [{ partitionIndex: partition, timestamp }]
    const found = await this.admin.listOffsets({ topics: [{ name: topic, partitions }] })
    return Number(found[0].partitions[0].offset)
  }

  async delete ({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] })
  }

  async join ({ group, topic }) {
    this.member = this.#consumer(group)
    this.records = []
    this.uncommitted = new Map()
    this.stream = await this.member.consume({
      topics: [topic], mode: 'committed', fallbackMode: 'earliest', autocommit: false
    })
    this.stream.on('data', message => this.records.push(message))
    this.stream.on('error', error => console.error(error))
  }

  async poll ({ wait_ms: waitMs }) {
    await until(() => this.records.length > 0, waitMs)
    const messages = this.records
    this.records = []
    for (const each of messages) this.uncommitted.set(each.partition, each)
    const assigned = (this.member.assignments ?? []).flatMap(each => each.partitions).sort()
    return { records: messages.map(record), assigned }
  }

  async commit () {
    const messages = [...this.uncommitted.values()]
    this.uncommitted.clear()
    for (const each of messages) await each.commit()
  }

  async leave () {
    await this.member.close(true)
  }

  #consumer (groupId) {
    return new Consumer({
      ...this.common,
      groupId,
      deserializers: stringDeserializers,
      retries: 60, // one each second: on a busy machine, a killed broker takes long to start again
      heartbeatInterval: 300,
      sessionTimeout: 10_000,
      maxWaitTime: 300
    })
  }
}

function record (message) {
  return {
    partition: message.partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: message.key ?? null,
    value: message.value ?? null,
    headers: Object.fromEntries(message.headers)
  }
}

await serve(new Platformatic(process.argv[2]))
