/**
 * What a run does, from headers alone: units that share a global scale, the slabs that they are read in, and output shards
 * whose every offset is known before a byte is read.
 */
package org.sparkfp4.plan;
