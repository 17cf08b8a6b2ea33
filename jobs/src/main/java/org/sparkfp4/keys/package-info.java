/**
 * Caches of indexer keys: keys of safetensors files or of a table become page images, ranges of pages in parallel, and
 * these become one file a layer; the index is written last.
 */
package org.sparkfp4.keys;
