// Prints the columns and rows of a Parquet file as JSON. Whole numbers are printed as text: they
// have 64 bits here, and numbers of JavaScript have 53.
import { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } from 'hyparquet'

const file = await asyncBufferFromFile(process.argv[2])
const { schema } = await parquetMetadataAsync(file)
const columns = schema.slice(1).map(({ name, type, converted_type }) => [name, converted_type ?? type])
const rows = await parquetReadObjects({ file })
const asText = (key, value) => (typeof value === 'bigint' ? String(value) : value)
console.log(JSON.stringify({ columns, rows }, asText))
