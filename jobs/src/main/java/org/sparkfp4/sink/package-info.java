/**
 * The writing half of the DataSource V2 table, and all that an output's folder holds: files that have their names when they
 * are whole, records of them, the lock, and publication with the index last.
 */
package org.sparkfp4.sink;
