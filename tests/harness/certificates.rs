//! The certificates and keys of one control plane.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SigningKey as _,
};

pub struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a certificate authority and the key that signs service account tokens.
    pub fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "sandbox");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.join("ca.crt"), issuer.pem()).unwrap();

        let accounts = KeyPair::generate().unwrap();
        fs::write(folder.join("service-account.key"), accounts.serialize_pem()).unwrap();
        fs::write(folder.join("service-account.pub"), accounts.public_key_pem()).unwrap();
        Self { folder: folder.to_owned(), issuer }
    }

    /// A client certificate for a user in groups, and its key, in PEM, valid until a second of the epoch.
    pub fn issue_until(&self, user: &str, groups: &[&str], until: u64) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(until);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// A client certificate for an administrator as others than today's tools make it: of version 1, or for
    /// another public key (a `SubjectPublicKeyInfo`), or both.
    pub fn issue_odd(&self, user: &str, version_1: bool, public_key: Option<&[u8]>) -> (String, String) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        let key = KeyPair::generate().unwrap();
        let usual = params.signed_by(&key, &self.issuer).unwrap();
        let [signed, algorithm, _] = &parts(&parts(usual.der())[0].1)[..] else { panic!("a certificate") };
        // version, serial number, signature, issuer, validity, subject, public key, extensions
        let mut fields: Vec<Vec<u8>> = parts(&signed.1).into_iter().map(|(whole, _)| whole).collect();
        if let Some(public_key) = public_key {
            fields[6] = public_key.to_vec();
        }
        if version_1 {
            fields.truncate(7);
            fields.remove(0);
        }
        let signed = der(0x30, &fields.concat());
        let mut signature = vec![0];
        signature.extend(self.issuer.key().sign(&signed).unwrap());
        let certificate = der(0x30, &[signed, algorithm.0.clone(), der(0x03, &signature)].concat());
        let block = pem::Pem::new("CERTIFICATE", certificate);
        (pem::encode(&block), key.serialize_pem())
    }

    /// Writes `<file>.crt` and `<file>.key` for a user in groups, or for a server on loopback.
    pub fn issue(&self, file: &str, user: &str, groups: &[&str], server: bool) {
        let names = if server { vec!["localhost".to_owned(), "127.0.0.1".to_owned()] } else { Vec::new() };
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.extended_key_usages = vec![if server {
            ExtendedKeyUsagePurpose::ServerAuth
        } else {
            ExtendedKeyUsagePurpose::ClientAuth
        }];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.folder.join(format!("{file}.crt")), certificate.pem()).unwrap();
        fs::write(self.folder.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}

/// The elements that follow each other in some DER: each whole, and its content.
fn parts(mut bytes: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    while bytes.len() >= 2 {
        let (mut length, mut header) = (usize::from(bytes[1]), 2);
        if length > 0x80 {
            header += length - 0x80;
            length = bytes[2..header].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        }
        let (whole, rest) = bytes.split_at(header + length);
        found.push((whole.to_vec(), whole[header..].to_vec()));
        bytes = rest;
    }
    found
}

/// An element of DER.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let mut bytes = match length {
        0..0x80 => vec![tag, u8::try_from(length).unwrap()],
        0x80..0x100 => vec![tag, 0x81, u8::try_from(length).unwrap()],
        _ => vec![tag, 0x82, u8::try_from(length >> 8).unwrap(), u8::try_from(length & 0xFF).unwrap()],
    };
    bytes.extend(content);
    bytes
}
