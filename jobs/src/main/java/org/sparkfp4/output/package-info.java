/**
 * The folder that a run writes into: files that have their names and records when they are whole, the lock, what a later run
 * finds there, and publication with the index last.
 */
package org.sparkfp4.output;
