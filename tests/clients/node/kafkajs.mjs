// The driver of kafkajs, with its own codec (gzip) and with further codecs, which are added in the
// documented way.

import { createRequire } from 'node:module'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { lz4Compress, lz4Decompress } from '@platformatic/wasm-utils'
import { login, serve, tls, until } from './commands.mjs'

const require = createRequire(import.meta.url)
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => lz4Compress(encoder.buffer),
  decompress: async buffer => lz4Decompress(buffer)
})
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => zstdCompressSync(encoder.buffer),
  decompress: async buffer => zstdDecompressSync(buffer)
})
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}

class KafkaJs {
  constructor (address) {
    const logCreator = () => ({ log }) => console.error(JSON.stringify(log))
    const sasl = login() && { ...login(), mechanism: login().mechanism.toLowerCase() }
    this.kafka = new Kafka({
      brokers: [address], ssl: tls(), sasl, logLevel: logLevel.WARN, logCreator, retry: { retries: 5 }
    })
    this.admin = this.kafka.admin()
    this.groups = 0
  }

  async version () {
    await this.admin.connect()
    return { version }
  }

  async create ({ topic, partitions }) {
    await this.admin.createTopics({ topics: [{ topic, numPartitions: partitions }] })
  }

  async describe ({ topic }) {
    const { topics } = await this.admin.fetchTopicMetadata({ topics: [topic] })
    return { partitions: topics[0].partitions.map(each => each.partitionId).sort() }
  }

  async topics () {
    return { topics: await this.admin.listTopics() }
  }

  async produce ({ topic, codec, acks, idempotent, records }) {
    const producer = this.kafka.producer({ idempotent, allowAutoTopicCreation: false })
    await producer.connect()
    try {
      const messages = records.map(({ partition, timestamp, key, value, headers }) => ({
        partition, key, value, headers, ...(timestamp === null ? {} : { timestamp: `${timestamp}` })
      }))
      await producer.send({ topic, acks, compression: CODECS[codec], messages })
    } finally {
      await producer.disconnect()
    }
  }

  // kafkajs has no consumer without a group, so this driver makes a new group and seeks to the
  // offset.
  async consume ({ topic, partition, offset, count }) {
    const found = []
    const consumer = this.#consumer(`${topic}-reader-${++this.groups}`)
    await consumer.connect()
    try {
      await consumer.subscribe({ topic, fromBeginning: true })
      await consumer.run({
        autoCommit: false,
        eachMessage: async given => {
          if (given.partition === partition && Number(given.message.offset) >= offset) {
            found.push(record(given))
          }
        }
      })
      consumer.seek({ topic, partition, offset: `${offset}` })
      await until(() => found.length >= count)
    } finally {
      await consumer.disconnect()
    }
    return { records: found }
  }

  async offsets ({ topic, partition }) {
    const found = await this.admin.fetchTopicOffsets(topic)
    const { low, high } = found.find(each => each.partition === partition)
    return { first: Number(low), end: Number(high) }
  }

  async offset_at ({ topic, partition, timestamp }) {
    const found = await this.admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
    return { offset: Number(found.find(each => each.partition === partition).offset) }
  }

  async delete ({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] })
  }

  async join ({ group, topic }) {
    this.member = this.#consumer(group)
    this.topic = topic
    this.records = []
    this.assigned = []
    this.positions = new Map()
    const { GROUP_JOIN, REBALANCING } = this.member.events
    this.member.on(GROUP_JOIN, ({ payload }) => {
      this.assigned = [...(payload.memberAssignment[topic] ?? [])].sort()
    })
    this.member.on(REBALANCING, () => { this.assigned = [] })
    await this.member.connect()
    await this.member.subscribe({ topic, fromBeginning: true })
    await this.member.run({
      autoCommit: false,
      eachMessage: async given => { this.records.push(record(given)) }
    })
  }

  async poll ({ wait_ms: waitMs }) {
    await until(() => this.records.length > 0, waitMs)
    const records = this.records
    this.records = []
    for (const each of records) this.positions.set(each.partition, each.offset + 1)
    return { records, assigned: this.assigned }
  }

  async commit () {
    const offsets = [...this.positions].map(([partition, offset]) => ({
      topic: this.topic, partition, offset: `${offset}`
    }))
    this.positions.clear()
    await this.member.commitOffsets(offsets)
  }

  async leave () {
    await this.member.disconnect()
  }

  #consumer (groupId) {
    return this.kafka.consumer({
      groupId,
      heartbeatInterval: 300,
      maxWaitTimeInMs: 300,
      allowAutoTopicCreation: false
    })
  }
}

function record ({ partition, message }) {
  const headers = Object.entries(message.headers ?? {})
  return {
    partition,
    offset: Number(message.offset),
    timestamp: Number(message.timestamp),
    key: message.key?.toString() ?? null,
    value: message.value?.toString() ?? null,
    headers: Object.fromEntries(headers.map(([name, value]) => [name, value.toString()]))
  }
}

await serve(new KafkaJs(process.argv[2]))
