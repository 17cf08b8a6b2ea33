/**
 * The writing half of the DataSource V2 table: a task a shard, from encoded slabs and the source's own bytes, front to back.
 */
package org.sparkfp4.sink;
