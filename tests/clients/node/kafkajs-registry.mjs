// The driver of @kafkajs/confluent-schema-registry, a registry client that kafkajs applications
// use.

import { createRequire } from 'node:module'
import { serve } from './commands.mjs'

const require = createRequire(import.meta.url)
const { COMPATIBILITY, SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')
const { version } = require('@kafkajs/confluent-schema-registry/package.json')

class KafkaJsRegistry {
  constructor (url) {
    this.registry = new SchemaRegistry({ host: url, retry: { retries: 1 } })
  }

  version () {
    return { version }
  }

  async register ({ subject, schema, references, level }) {
    const given = { type: SchemaType.AVRO, schema, references }
    const compatibility = COMPATIBILITY[level ?? 'BACKWARD']
    const { id } = await this.registry.register(given, { subject, compatibility })
    return { id }
  }

  async lookup ({ subject, schema }) {
    const given = { type: SchemaType.AVRO, schema }
    return { id: await this.registry.getRegistryIdBySchema(subject, given) }
  }

  async latest ({ subject }) {
    return { id: await this.registry.getLatestSchemaId(subject) }
  }

  async id_of ({ subject, version }) {
    return { id: await this.registry.getRegistryId(subject, version) }
  }

  async encode ({ id, value }) {
    return { bytes: (await this.registry.encode(id, value)).toString('base64') }
  }

  async decode ({ bytes }) {
    return { value: await this.registry.decode(Buffer.from(bytes, 'base64')) }
  }
}

await serve(new KafkaJsRegistry(process.argv[2]))
