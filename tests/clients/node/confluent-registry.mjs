// The driver of @confluentinc/schemaregistry, which has Confluent's own registry client and
// serializers.

import { createRequire } from 'node:module'
import { serve } from './commands.mjs'

const require = createRequire(import.meta.url)
const { AvroDeserializer, AvroSerializer, SchemaRegistryClient, SerdeType } =
  require('@confluentinc/schemaregistry')
const { version } = require('@confluentinc/schemaregistry/package.json')

class ConfluentRegistry {
  constructor (url) {
    this.client = new SchemaRegistryClient({
      baseURLs: [url], maxRetries: 1, cacheCapacity: 100, cacheLatestTtlSecs: 1
    })
  }

  version () {
    return { version }
  }

  async register ({ subject, schema, references }) {
    const found = await this.client.registerFullResponse(subject, submitted(schema, references))
    return { id: found.id }
  }

  async lookup ({ subject, schema }) {
    const found = await this.client.getVersion(subject, submitted(schema))
    return { version: found }
  }

  async latest ({ subject }) {
    const { id, version, schema } = await this.client.getLatestSchemaMetadata(subject)
    return { id, version, schema }
  }

  async compatible ({ subject, schema }) {
    return { compatible: await this.client.testSubjectCompatibility(subject, submitted(schema)) }
  }

  async level ({ subject, set }) {
    if (set) await this.client.updateCompatibility(subject, set)
    return { level: await this.client.getCompatibility(subject) }
  }

  async subjects () {
    return { subjects: await this.client.getAllSubjects() }
  }

  async versions ({ subject }) {
    return { versions: await this.client.getAllVersions(subject) }
  }

  async delete ({ subject, permanent }) {
    return { versions: await this.client.deleteSubject(subject, permanent) }
  }

  // With `register`, the serializer makes the schema from the value. With `latest`, it uses the
  // newest schema.
  async encode ({ topic, value, how }) {
    const settings = { register: { autoRegisterSchemas: true }, latest: { useLatestVersion: true } }
    const conf = { autoRegisterSchemas: false, ...settings[how] }
    const serializer = new AvroSerializer(this.client, SerdeType.VALUE, conf)
    return { bytes: (await serializer.serialize(topic, value)).toString('base64') }
  }

  async decode ({ topic, bytes }) {
    const deserializer = new AvroDeserializer(this.client, SerdeType.VALUE, {})
    return { value: await deserializer.deserialize(topic, Buffer.from(bytes, 'base64')) }
  }
}

function submitted (schema, references) {
  return { schemaType: 'AVRO', schema, ...(references ? { references } : {}) }
}

await serve(new ConfluentRegistry(process.argv[2]))
